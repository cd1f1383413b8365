package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// terminate reports a placement that was deleted from the repository, until nothing of it is
// left, as an object that is being deleted, with its last spec. A placement whose spec is
// unknown, because an older version recorded it, is reported with its details only; so is one
// that was, or may have been, renamed.
func (e *placementEntry) terminate(in Input, old *placementEntry) {
	p := e.of
	if p.Record.Spec == nil || p.Record.DeletedAt.IsZero() || p.Record.Into != (api.PlacementKey{}) {
		return
	}
	b := &builder{Input: in, p: p}
	at := metav1.NewTime(p.Record.DeletedAt)
	conditions := []metav1.Condition{{
		Type: b.prefix() + api.Scheduled, Status: metav1.ConditionFalse, Reason: api.PlacementDeleted,
		Message: deletedText(p), ObservedGeneration: p.Record.Generation, LastTransitionTime: at,
	}}
	if v, held := b.deletionsHeld(p.Clusters...); held {
		conditions = append(conditions, metav1.Condition{
			Type: api.DeletionsHeld, Status: v.status, Reason: v.reason, Message: v.message,
			ObservedGeneration: p.Record.Generation, LastTransitionTime: at,
		})
	}
	meta := metav1.ObjectMeta{
		Name: p.Key.Name, Namespace: p.Key.Namespace, UID: placementUID(p.Key, p.Record), Generation: p.Record.Generation,
		CreationTimestamp: metav1.NewTime(p.Record.Created), DeletionTimestamp: &at, Finalizers: []string{api.CleanupFinalizer},
	}
	s := api.PlacementStatus{Conditions: conditions}
	kind := typeMeta(api.PlacementGroup, p.Key.Kind())
	same := old != nil && old.of.Spec == nil
	switch {
	case p.Key.Namespace == "" && same && old.cluster != nil && sameStatus(&s, &old.cluster.Status):
		e.cluster = old.cluster
	case p.Key.Namespace == "":
		e.cluster = &api.ClusterResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: *p.Record.Spec, Status: s}
	case same && old.namespaced != nil && sameStatus(&s, &old.namespaced.Status):
		e.namespaced = old.namespaced
	default:
		e.namespaced = &api.ResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: *p.Record.Spec, Status: s}
	}
}

// deletedText says what happens to the objects of a deleted placement.
func deletedText(p *plan.Placement) string {
	if p.Record.Abandon {
		return "The placement is gone from the repository; what it placed stays where it is"
	}
	return "The placement is gone from the repository; what it placed is being removed"
}
