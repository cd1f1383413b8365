package status

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// An eventBuilder collects the events of a placement: of what has happened to it, and of conditions that have changed.
type eventBuilder struct {
	builder *builder
	// old is the previous report; nil if there is none. Then the ledger has the conditions from
	// before a restart.
	old           *placementEntry
	before, after api.PlacementStatus
	events        []Event
}

// add adds an event; one without a commit gets the commit in force.
func (h *eventBuilder) add(e Event) {
	e.Commit = cmp.Or(e.Commit, h.builder.in.InForce.Commit.Hash)
	h.events = append(h.events, e)
}

// addAll adds events.
func (h *eventBuilder) addAll(events []Event) {
	for _, e := range events {
		h.add(e)
	}
}

// about returns the events as Kubernetes events whose involvedObject is the placement.
func (h *eventBuilder) about() []Event {
	return event.AboutPlacement(h.builder.p.Key, h.builder.p.Record.Created, h.builder.in.Now, h.events)
}

// fresh reports whether a condition is about this generation of the spec.
func (h *eventBuilder) fresh(c metav1.Condition) bool {
	return c.ObservedGeneration == h.builder.p.Record.Generation
}

// statusBefore is the previous status of a condition of the placement for this generation of
// its spec.
func (h *eventBuilder) statusBefore(typ string) string {
	if h.old == nil {
		if h.builder.record == nil {
			return ""
		}
		return h.builder.record.Transitions[typ].Status
	}
	if c := meta.FindStatusCondition(h.before.Conditions, typ); c != nil && h.fresh(*c) {
		return string(c.Status)
	}
	return ""
}

// becameTrue reports whether a condition of the placement has become true.
func (h *eventBuilder) becameTrue(typ string) bool {
	return meta.IsStatusConditionTrue(h.after.Conditions, typ) && h.statusBefore(typ) != string(metav1.ConditionTrue)
}

// done reports whether all expected conditions of a placement are true.
func (h *eventBuilder) done(s api.PlacementStatus) bool {
	return !slices.ContainsFunc(append(h.builder.expected(), api.Scheduled), func(typ string) bool {
		return !meta.IsStatusConditionTrue(s.Conditions, h.builder.prefix()+typ)
	})
}

// clusterBefore returns the previous plan for a cluster; nil if the placement did not hold it.
func (h *eventBuilder) clusterBefore(cluster string) *plan.OnCluster {
	if h.old == nil {
		return nil
	}
	return h.old.of.On(cluster)
}

// recordBefore returns the record of the placement that the previous report was made of; nil if there is none.
func (h *eventBuilder) recordBefore() *ledger.Placement {
	if h.old == nil {
		return nil
	}
	return &h.old.of.Record
}

// commitOn returns the commit that is assigned to a cluster; empty if the placement does not hold it.
func (h *eventBuilder) commitOn(cluster string) string {
	if c := h.builder.p.On(cluster); c != nil {
		return c.Binding.Assigned.Commit
	}
	return ""
}

// addLimited adds events of one cluster, of which only some are listed one by one if there are many.
func (h *eventBuilder) addLimited(cluster, commit string, events []Event) {
	h.addAll(event.Limited(cluster, commit, events))
}
