package validation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// The limits of gates.
const (
	// longestGate is the longest time that a gate may ask for.
	longestGate = 366 * 24 * time.Hour
	// shortestInterval is the shortest time between two questions.
	shortestInterval = 5 * time.Second
	longestQuery     = 4 << 10
	// longestJobInterval is the longest time between two checks of a Job.
	longestJobInterval = time.Hour
)

// CheckGate validates a RolloutGate.
func CheckGate(r *document.Report, id api.ID, spec *api.RolloutGateSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	kinds := 0
	if spec.Soak != nil {
		kinds++
		checkGateTime(r, r.Field("spec", "soak", "duration"), spec.Soak.Duration, time.Second)
	}
	if spec.Prometheus != nil {
		kinds++
		checkPrometheusGate(r, r.Field("spec", "prometheus"), spec.Prometheus)
	}
	if spec.HTTP != nil {
		kinds++
		checkHTTPGate(r, r.Field("spec", "http"), spec.HTTP)
	}
	if spec.Objects != nil {
		kinds++
		checkObjectsGate(r, r.Field("spec", "objects"), spec.Objects)
	}
	if spec.Job != nil {
		kinds++
		checkJobGate(r, r.Field("spec", "job"), spec.Job)
	}
	switch kinds {
	case 0:
		r.Rulef(r.Field("spec"), "no check is set; set one of soak, prometheus, http, objects or job")
	case 1:
	default:
		r.Rulef(r.Field("spec"), "more than one check is set; write one RolloutGate for each, and list each as a task")
	}
}

// checkGateTime validates a time that something of a gate takes.
func checkGateTime(r *document.Report, at *document.FieldPath, text string, shortest time.Duration) {
	if d, err := time.ParseDuration(text); err != nil || d < shortest || d > longestGate {
		r.Rulef(at, "%q is not a duration from %s to 366 days; write for example 30m or 24h", text, shortest)
	}
}

func checkPrometheusGate(r *document.Report, at *document.FieldPath, g *api.PrometheusGate) {
	checkGateAddress(r, at.Child("address"), g.Address)
	notEmpty(r, at.Child("query"), g.Query)
	if len(g.Query) > longestQuery {
		r.Rulef(at.Child("query"), "has %d bytes, more than %d; make it a recording rule", len(g.Query), longestQuery)
	}
	if _, err := api.ParseThreshold(g.Condition); err != nil {
		r.Rulef(at.Child("condition"), "%v", err)
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

func checkHTTPGate(r *document.Report, at *document.FieldPath, g *api.HTTPGate) {
	checkGateAddress(r, at.Child("url"), g.URL)
	if g.Status != 0 && (g.Status < 200 || g.Status > 599) {
		r.Rulef(at.Child("status"), "%d is not a status code from 200 to 599", g.Status)
	}
	if g.Condition != "" {
		if _, err := expression.CompileResponse(g.Condition); err != nil {
			r.Rulef(at.Child("condition"), "%v; write for example response.body.ready == true", err)
		}
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

func checkObjectsGate(r *document.Report, at *document.FieldPath, g *api.ObjectsGate) {
	gv, err := schema.ParseGroupVersion(g.APIVersion)
	if err != nil || gv.Version == "" {
		r.Rulef(at.Child("apiVersion"), "%q is not an API version; write for example apps/v1", g.APIVersion)
	}
	notEmpty(r, at.Child("kind"), g.Kind)
	if gv.Group == "" && g.Kind == "Secret" {
		r.Rulef(at.Child("kind"), "a gate does not read Secrets, since what it answers is shown; look at an object that uses it")
	}
	if _, err := expression.CompileGate(g.Condition); err != nil {
		r.Rulef(at.Child("condition"), "%v; write for example object.status.readyReplicas == object.spec.replicas", err)
	}
	checkGateSchedule(r, at, &g.GateSchedule)
}

func checkJobGate(r *document.Report, at *document.FieldPath, g *api.JobGate) {
	namespace := at.Child("namespace")
	r.RecordLine(namespace)
	switch {
	case len(validation.IsDNS1123Label(g.Namespace)) > 0:
		r.Rulef(namespace, "%q is not a valid namespace", g.Namespace)
	case api.ReservedNamespace(g.Namespace):
		r.Rulef(namespace, "no Job runs in %s, which belongs to Kubernetes, KubeFleet or gitfleet; use a namespace for Jobs of gates", g.Namespace)
	}
	if g.Clusters < 0 {
		r.Rulef(at.Child("clusters"), "must be 1 or more; leave it out for all clusters of the stage")
	}
	if g.Timeout != "" {
		checkGateTime(r, at.Child("timeout"), g.Timeout, time.Second)
	}
	checkGateSchedule(r, at, &api.GateSchedule{Interval: g.Interval, ToleratedFailures: g.ToleratedFailures})
	if d, err := time.ParseDuration(g.Interval); err == nil && d > longestJobInterval {
		r.Rulef(at.Child("interval"), "is longer than %s: a Job has to be looked at before it is deleted, a day after it has ended", longestJobInterval)
	}
	template := map[string]any{}
	if json.Unmarshal(g.Template, &template) != nil {
		r.Rulef(at.Child("template"), "must be a mapping with metadata and spec, as in a CronJob")
		return
	}
	checkJobTemplate(r, at.Child("template"), template)
}

// fixedJobFields are the fields in the spec of a Job that a gate sets or does not allow, and what to do instead.
var fixedJobFields = map[string]string{
	"activeDeadlineSeconds":   "follows from spec.job.timeout; write it there",
	"manualSelector":          "is for Jobs that adopt Pods; remove it",
	"selector":                "is set by each cluster; remove it",
	"suspend":                 "keeps the Job from running; remove it",
	"ttlSecondsAfterFinished": "is set by gitfleet, which has to see how the Job ends; remove it",
}

// checkJobTemplate validates what a Job of a gate needs beside what each Job does.
func checkJobTemplate(r *document.Report, at *document.FieldPath, template map[string]any) {
	if encrypted := api.CiphertextIn(template); encrypted != nil {
		r.Rulef(at, "%s", encrypted.Message())
	}
	for _, key := range slices.Sorted(maps.Keys(template)) {
		if key != "metadata" && key != "spec" {
			r.Rulef(at.Child(key), "unknown field; known here: metadata, spec")
		}
	}
	checkJobMetadata(r, at.Child("metadata"), template["metadata"])
	spec, _ := template["spec"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fixedJobFields)) {
		if spec[key] != nil {
			r.Rulef(at.Child("spec", key), "%s", fixedJobFields[key])
		}
	}
	if containers, _, _ := unstructured.NestedSlice(spec, "template", "spec", "containers"); len(containers) == 0 {
		r.Rulef(at.Child("spec", "template", "spec", "containers"), "required, and missing; add a container that does the check")
	}
	if policy, _, _ := unstructured.NestedString(spec, "template", "spec", "restartPolicy"); policy != "Never" && policy != "OnFailure" {
		r.Rulef(at.Child("spec", "template", "spec", "restartPolicy"), "must be Never or OnFailure in a Job; write for example Never")
	}
}

// checkJobMetadata validates the labels and annotations in the template of a Job, which gitfleet adds its own to.
func checkJobMetadata(r *document.Report, at *document.FieldPath, v any) {
	metadata, is := v.(map[string]any)
	if v != nil && !is {
		r.Rulef(at, "must be a mapping with labels and annotations")
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if key != "labels" && key != "annotations" {
			r.Rulef(at.Child(key), "is set by gitfleet; remove it, a template has labels and annotations")
			continue
		}
		values, is := metadata[key].(map[string]any)
		if metadata[key] != nil && !is {
			r.Rulef(at.Child(key), "must be a mapping of texts")
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if strings.HasPrefix(name, api.OverlayGroup+"/") {
				r.Rulef(at.Child(key, name), "is set by gitfleet; remove it")
			} else if _, is := values[name].(string); !is {
				r.Rulef(at.Child(key, name), "must be a text; put it in quotation marks")
			}
		}
	}
}

// checkGateAddress validates the address of a server, whose line is needed to compare it with the configuration.
func checkGateAddress(r *document.Report, at *document.FieldPath, address string) {
	if err := api.CheckAddress(address); err != nil {
		r.Rulef(at, "%v", err)
	}
	r.RecordLine(at)
}

func checkGateSchedule(r *document.Report, at *document.FieldPath, s *api.GateSchedule) {
	if s.Interval != "" {
		checkGateTime(r, at.Child("interval"), s.Interval, shortestInterval)
	}
	if s.Duration != "" {
		checkGateTime(r, at.Child("duration"), s.Duration, time.Second)
	}
	if s.ToleratedFailures < 0 {
		r.Rulef(at.Child("toleratedFailures"), "must be 0 or more")
	}
}
