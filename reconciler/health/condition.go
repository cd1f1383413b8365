package health

import (
	"cmp"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A condition has the fields of a status condition that the rules use; zero if there is none.
type condition struct {
	Status, Reason, Message string
	Generation              int64 // observedGeneration; 0 if not set
}

// why returns the condition's reason and message, to be appended to a message.
func (c condition) why() string {
	if c.Reason == "" {
		return withMessage("", c.Message)
	}
	return ": " + withMessage(c.Reason, c.Message)
}

// condition returns the condition of a type.
func (f *fields) condition(typ string) condition {
	for _, item := range get[[]any](f, "status", "conditions") {
		m, _ := item.(map[string]any)
		if m["type"] != typ {
			continue
		}
		c := fields{live: &unstructured.Unstructured{Object: m}}
		found := condition{
			Status: get[string](&c, "status"), Reason: get[string](&c, "reason"),
			Message: get[string](&c, "message"), Generation: c.number("observedGeneration"),
		}
		f.recordError(c.err)
		return found
	}
	return condition{}
}

// custom judges a custom resource by its conditions: first as kstatus does (generation,
// Stalled, Reconciling, Ready), then by Available. A custom resource with neither Ready nor
// Available, or with a status of another form, is not trackable.
func custom(live *unstructured.Unstructured) Health {
	f := fields{live: live}
	ready, available := f.condition("Ready"), f.condition("Available")
	result, err := status.Compute(withoutDeletion(live))
	if f.err != nil || err != nil {
		return Health{State: NotTrackable}
	}
	switch {
	case result.Status == status.FailedStatus:
		why := cmp.Or(result.Message, "not ready"+ready.why())
		return Health{State: NotAvailableYet, Message: why, Failure: why}
	case result.Status != status.CurrentStatus:
		return Health{State: NotAvailableYet, Message: cmp.Or(result.Message, "not ready"+ready.why())}
	case ready.Status != "":
		return f.first(f.stale("Ready", ready))
	case available.Status != "":
		return f.first(f.stale("Available", available), messageIf(available.Status != "True", "not available%s", available.why()))
	case alwaysReady[live.GroupVersionKind().GroupKind()]:
		return Health{State: NotAvailableYet, Message: "no condition Ready yet: " + unseen, Unseen: true}
	default:
		return Health{State: NotTrackable}
	}
}

// alwaysReady are the custom kinds whose controller always sets the condition Ready: without it, it has not seen the object.
var alwaysReady = map[api.GroupKind]bool{
	{Group: "external-secrets.io", Kind: "ExternalSecret"}:        true,
	{Group: "external-secrets.io", Kind: "ClusterExternalSecret"}: true,
	{Group: "external-secrets.io", Kind: "SecretStore"}:           true,
	{Group: "external-secrets.io", Kind: "ClusterSecretStore"}:    true,
}

// stale returns a message if a condition was set for an older spec, or "".
func (f *fields) stale(typ string, c condition) string {
	return messageIf(c.Generation != 0 && c.Generation != f.live.GetGeneration(),
		"condition %s is of generation %d, not %d", typ, c.Generation, f.live.GetGeneration())
}

// withoutDeletion hides from kstatus that an object is being deleted, which does not matter for
// its availability.
func withoutDeletion(live *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetDeletionTimestamp() == nil {
		return live
	}
	live = live.DeepCopy()
	live.SetDeletionTimestamp(nil)
	return live
}

// TrueCondition returns the condition of a type in the status of an object, if that is True; otherwise nil.
func TrueCondition(live *unstructured.Unstructured, typ string) map[string]any {
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range all {
		if c, _ := c.(map[string]any); c["type"] == typ && c["status"] == "True" {
			return c
		}
	}
	return nil
}
