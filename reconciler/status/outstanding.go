package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Completed is the type of an Outstanding when no condition is outstanding.
const Completed = "Completed"

// Outstanding is the condition that a placement has to reach next.
type Outstanding struct {
	// Type is Completed if all conditions are reached.
	Type string
	// Status and Reason are "nil" if the condition is missing or belongs to an older spec.
	Status, Reason string
}

// OutstandingOf returns the condition that a placement of either kind has to reach next.
func OutstandingOf(object *metav1.ObjectMeta, spec *api.PlacementSpec, conditions []metav1.Condition) Outstanding {
	for _, typ := range append([]string{api.Scheduled}, expected(spec)...) {
		typ = prefix(object.Namespace) + typ
		c := meta.FindStatusCondition(conditions, typ)
		switch {
		case c == nil || c.ObservedGeneration != object.Generation:
			return Outstanding{typ, "nil", "nil"}
		case c.Status != metav1.ConditionTrue:
			return Outstanding{typ, string(c.Status), c.Reason}
		}
	}
	return Outstanding{Completed, string(metav1.ConditionTrue), Completed}
}

// prefix is the prefix of a placement's condition types.
func prefix(namespace string) string {
	if namespace == "" {
		return api.PlacementPrefix
	}
	return api.ResourcePlacementPrefix
}

// expected are the conditions after Scheduled, in the order of progress.
func expected(spec *api.PlacementSpec) []string {
	before := []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized}
	if spec.Strategy.ReportsDiff() {
		return append(before, api.DiffReported)
	}
	return append(before, api.Applied, api.Available)
}
