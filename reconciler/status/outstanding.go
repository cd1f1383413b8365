package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
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
func OutstandingOf(object *metav1.ObjectMeta, spec *api.PlacementSpec, all []metav1.Condition) Outstanding {
	for _, typ := range append([]string{api.Scheduled}, conditions.Expected(spec)...) {
		typ = conditions.Prefix(object.Namespace) + typ
		c := meta.FindStatusCondition(all, typ)
		if c == nil || c.ObservedGeneration != object.Generation {
			return Outstanding{typ, "nil", "nil"}
		}
		if c.Status != metav1.ConditionTrue {
			return Outstanding{typ, string(c.Status), c.Reason}
		}
	}
	return Outstanding{Completed, string(metav1.ConditionTrue), Completed}
}

// FirstUntrue returns the first condition that is not true, in their order, which is that of
// progress; nil if there is none. With types, it is the first of these, with any prefix.
func FirstUntrue(conditions []metav1.Condition, types ...string) *metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		of := func(typ string) bool { return strings.HasSuffix(c.Type, typ) }
		if c.Status != metav1.ConditionTrue && (len(types) == 0 || slices.ContainsFunc(types, of)) {
			return c
		}
	}
	return nil
}
