package health

import (
	"cmp"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A condition is what we read of one in status.conditions; zero if there is
// none.
type condition struct {
	Status, Reason, Message string
	Generation              int64 // observed; 0 if it does not say
}

// why returns the condition's own words, to be appended to ours.
func (c condition) why() string {
	if c.Reason == "" {
		return with("", c.Message)
	}
	return ": " + with(c.Reason, c.Message)
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
		f.note(c.err)
		return found
	}
	return condition{}
}

// custom reads a custom resource by its conditions: first as kstatus does
// (generation, Stalled, Reconciling, Ready), then by Available. One that has
// neither Ready nor Available cannot be tracked, and no more can one whose
// status is written in a way of its own.
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
		return f.first(f.stale("Available", available), missing(available.Status != "True", "not available%s", available.why()))
	default:
		return Health{State: NotTrackable}
	}
}

// stale says that a condition speaks of an older spec, or "".
func (f *fields) stale(typ string, c condition) string {
	return missing(c.Generation != 0 && c.Generation != f.live.GetGeneration(),
		"condition %s is of generation %d, not %d", typ, c.Generation, f.live.GetGeneration())
}

// withoutDeletion hides from kstatus that an object is being deleted: whether
// it works is another question.
func withoutDeletion(live *unstructured.Unstructured) *unstructured.Unstructured {
	if live.GetDeletionTimestamp() == nil {
		return live
	}
	live = live.DeepCopy()
	live.SetDeletionTimestamp(nil)
	return live
}
