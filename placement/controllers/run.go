package controllers

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Run is a kind whose objects run to an end, and are then deleted by a controller if they have a
// sign of it. That deletion is no drift: the object has run, and does not run again until its
// content changes.
type Run struct {
	api.GroupKind
	// Sign says in words by what an object that is deleted is recognised; deletes reports whether
	// a manifest has that sign.
	Sign    string
	deletes func(manifest map[string]any) bool
	// Owner is what deletes the object.
	Owner string
	// conditions are the types of conditions that are true at the end, and phases the values that
	// the field phase has then.
	conditions, phase, phases []string
}

// Runs are the kinds whose objects run to an end.
var Runs = []Run{
	{
		GroupKind: api.GroupKind{Group: "batch", Kind: "Job"}, Sign: "`ttlSecondsAfterFinished`", deletes: has("spec", "ttlSecondsAfterFinished"),
		Owner: "the TTL controller", conditions: []string{"Complete", "Failed"},
	},
	{
		GroupKind: api.GroupKind{Kind: "Pod"}, Sign: "`restartPolicy: Never` or `OnFailure`, once it has succeeded", deletes: isFinite,
		Owner: "the garbage collector of Pods", phase: []string{"status", "phase"}, phases: []string{"Succeeded"},
	},
	{
		GroupKind: api.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}, Sign: "approved, denied or failed",
		deletes: func(map[string]any) bool { return true }, Owner: "the controller that cleans up CertificateSigningRequests",
		conditions: []string{"Approved", "Denied", "Failed"},
	},
	{
		GroupKind: api.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}, Sign: "`ttlSecondsAfterFinished`", deletes: has("spec", "ttlSecondsAfterFinished"),
		Owner: "the JobSet controller", conditions: []string{"Completed", "Failed"},
	},
	{
		GroupKind: api.GroupKind{Group: "argoproj.io", Kind: "Workflow"}, Sign: "`ttlStrategy`", deletes: has("spec", "ttlStrategy"),
		Owner: "the workflow controller of Argo", phase: []string{"status", "phase"}, phases: []string{"Succeeded", "Failed", "Error"},
	},
	{
		GroupKind: api.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}, Sign: "`ttlSecondsAfterFinished`", deletes: has("spec", "ttlSecondsAfterFinished"),
		Owner: "the Volcano controller", phase: []string{"status", "state", "phase"}, phases: []string{"Completed", "Failed", "Aborted", "Terminated"},
	},
	{
		GroupKind: api.GroupKind{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}, Sign: "`timeToLiveSeconds`", deletes: has("spec", "timeToLiveSeconds"),
		Owner: "the Spark operator", phase: []string{"status", "applicationState", "state"}, phases: []string{"COMPLETED", "FAILED"},
	},
}

// RunOf returns how a controller deletes the object of a manifest once it has ended; nil if none
// does.
func RunOf(manifest *unstructured.Unstructured) *Run {
	if r := runOf(manifest); r != nil && r.deletes(manifest.Object) {
		return r
	}
	return nil
}

func runOf(o *unstructured.Unstructured) *Run {
	kind := o.GroupVersionKind().GroupKind()
	if i := slices.IndexFunc(Runs, func(r Run) bool { return r.GroupKind == kind }); i >= 0 {
		return &Runs[i]
	}
	return nil
}

// HasEnded reports whether a live object has run to its end.
func HasEnded(live *unstructured.Unstructured) bool {
	r := runOf(live)
	if r == nil {
		return false
	}
	if r.phase != nil {
		phase, _, _ := unstructured.NestedString(live.Object, r.phase...)
		return slices.Contains(r.phases, phase)
	}
	list, _, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "conditions")
	conditions, _ := list.([]any)
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		typ, _ := c["type"].(string)
		return c["status"] == "True" && slices.Contains(r.conditions, typ)
	})
}

func has(path ...string) func(map[string]any) bool {
	return func(o map[string]any) bool {
		v, _, _ := unstructured.NestedFieldNoCopy(o, path...)
		return v != nil
	}
}

// isFinite reports whether the containers of a Pod end.
func isFinite(o map[string]any) bool {
	policy, _, _ := unstructured.NestedString(o, "spec", "restartPolicy")
	return policy == "Never" || policy == "OnFailure"
}
