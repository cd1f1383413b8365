package status

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// reached are the events for conditions of a placement that become true, in the order of
// progress.
var reached = []struct{ typ, reason, message string }{
	{api.RolloutStarted, api.PlacementRolloutStarted, "Started rolling out the latest resources"},
	{api.Overridden, api.PlacementOverriddenSucceeded, "Placement has been successfully overridden"},
	{api.WorkSynchronized, api.PlacementWorkSynchronized, "Work(s) have been created or updated successfully for the selected cluster(s)"},
	{api.Applied, api.PlacementApplied, "Resources have been applied to the selected cluster(s)"},
	{api.Available, api.PlacementAvailable, "Resources are available on the selected cluster(s)"},
	{api.DiffReported, api.PlacementDiffReported, "Configuration differences have been reported on the selected cluster(s)"},
}

// events returns the events about the changes of a placement since the last report.
func (b *builder) events(after api.PlacementStatus, drifts []Drift) []Event {
	h := &eventBuilder{builder: b, old: b.old, after: after}
	if b.p.Pending { // nothing has happened yet
		h.warnings()
		return h.about()
	}
	h.old = eventsSince(b)
	if b.old != nil && b.old.of.Spec != nil {
		h.before = b.old.status()
	}
	renamed := false
	for _, r := range h.builder.in.Plan.Renames {
		if r.To == b.p.Key {
			renamed = true
			h.add(event.Normal(api.PlacementRenamed, "The placement was renamed from "+r.From.String()+"; it keeps its clusters, revisions, stop and suspensions"))
		}
	}
	h.schedulingEvents()
	for _, e := range reached {
		if h.becameTrue(h.builder.prefix() + e.typ) {
			h.add(event.Normal(e.reason, e.message))
		}
	}
	progressed := slices.ContainsFunc(h.after.Conditions, func(c metav1.Condition) bool { return h.becameTrue(c.Type) })
	if h.done(h.after) && !(h.old != nil && h.done(h.before) && h.fresh(h.before.Conditions[0])) && progressed {
		h.add(event.Normal(api.PlacementRolloutCompleted, "Placement has finished the rollout process and reached the desired status"))
	}
	if !renamed {
		h.stopped()
	}
	if h.old != nil && h.old.detail != nil {
		h.addAll(updaterun.Events(h.old.of, h.old.detail.UpdateRun, h.builder.p, updaterun.Of(h.builder.p, h.builder.in.Now, h.builder.in.ApprovalsInGit)))
	}
	h.evictionEvents()
	if reportsClusters(b) {
		h.clusterEvents()
		h.deletions()
		h.driftEvents(drifts)
		h.warnings()
	}
	return h.about()
}

// schedulingEvents adds events about the condition Scheduled, for which KubeFleet has none.
func (h *eventBuilder) schedulingEvents() {
	now := meta.FindStatusCondition(h.after.Conditions, h.builder.prefix()+api.Scheduled)
	old := meta.FindStatusCondition(h.before.Conditions, now.Type)
	switch {
	case h.old == nil && h.statusBefore(now.Type) == string(now.Status):
	case old != nil && old.Status == now.Status && old.Reason == now.Reason:
	case now.Status == metav1.ConditionTrue:
		h.add(event.Normal(now.Reason, now.Message))
	default:
		h.add(event.Warning(now.Reason, now.Message))
	}
}

// stopped adds events when failed updates stop the rollout, and when it is resumed.
func (h *eventBuilder) stopped() {
	was, now := h.recordBefore(), &h.builder.p.Record
	switch change := occurrence.RolloutSince(was, now); {
	case change.Stopped:
		by := now.Stops[0].Cluster
		e := event.Warning(api.RolloutStopped, "The rollout is stopped: cluster "+by+" was available before its update, which failed")
		if c := h.builder.p.On(by); c != nil && c.Unusual().Failure != "" {
			e.Message += ": " + c.Unusual().Failure
		}
		e.Cluster = by
		h.add(e)
	case change.Resumed:
		h.add(event.Normal(api.RolloutResumed, "The rollout continues: it was stopped by cluster "+was.Stops[0].Cluster))
	}
}

// deletions adds events about deletions that are blocked, and about those that fail.
func (h *eventBuilder) deletions() {
	for i, c := range h.builder.p.Clusters {
		if h.old != nil && i < len(h.old.of.Clusters) && h.old.of.Clusters[i] == c {
			continue
		}
		was := h.clusterBefore(c.Binding.Cluster)
		if was == c {
			continue
		}
		before, now := &protocol.WorkState{}, cmp.Or(c.LastKnown(), &protocol.WorkState{})
		if was != nil {
			before = cmp.Or(was.LastKnown(), before)
		}
		var blocked, failed []Event
		if deletions, pending := c.BlockedDeletions(); !pending {
			for _, b := range added(before.Unusual().BlockedDeletions, deletions, func(b protocol.BlockedDeletion) api.ID { return b.ID }) {
				blocked = append(blocked, event.Warning(api.DeletionBlocked, b.ID.String()+": "+b.Why))
			}
		}
		for _, f := range added(before.Unusual().DeletionErrors, now.Unusual().DeletionErrors, func(f protocol.DeletionError) api.ID { return f.ID }) {
			failed = append(failed, event.Warning(api.DeletionFailed, f.ID.String()+": "+f.Message))
		}
		h.addLimited(c.Binding.Cluster, c.Binding.Assigned.Commit, blocked)
		h.addLimited(c.Binding.Cluster, c.Binding.Assigned.Commit, failed)
	}
}

// warnings adds events about warnings.
func (h *eventBuilder) warnings() {
	for _, w := range h.builder.p.Warnings {
		if h.old == nil || !slices.Contains(h.old.of.Warnings, w) {
			h.add(event.Warning(api.PlacementWarning, w.Error()))
		}
	}
}

// deletedEvents returns the events of a placement that was deleted from the repository: the
// deletion itself, and what holds up the removal.
func (b *builder) deletedEvents(old *placementEntry) []Event {
	h := &eventBuilder{builder: b, old: old}
	for _, r := range b.in.Plan.Renames {
		if r.From == b.p.Key {
			h.add(event.Normal(api.PlacementRenamed, "The placement goes on as "+r.To.String()+"; clusters hand over to it what they hold"))
		}
	}
	if occurrence.Removing(h.recordBefore(), &b.p.Record) {
		h.add(event.Normal(api.PlacementDeleted, deletedText(b.p)))
	}
	h.deletions()
	return h.about()
}

// removedEvents returns the event that nothing is left of a placement.
func removedEvents(p *plan.Placement, in Input) []Event {
	if !occurrence.Removed(p) {
		return nil
	}
	e := event.Normal(api.PlacementCleanupFinalizerRemoved, "Deleted the snapshots and removed the placement cleanup finalizer")
	return event.AboutPlacement(p.Key, p.Record.Created, in.Now, []Event{e})
}

// driftEvents adds events about objects that others changed, about what was done, and about the
// end of a drift.
func (h *eventBuilder) driftEvents(now []Drift) {
	known := map[string]*Drift{} // by cluster and object
	at := func(d *Drift) string {
		return d.Cluster + " " + d.ResourceIdentifier.SortKey() + strconv.FormatBool(d.Addition)
	}
	if h.old != nil {
		for i := range h.old.drifts {
			known[at(&h.old.drifts[i])] = &h.old.drifts[i]
		}
	}
	var events []Event
	for i := range now {
		d := &now[i]
		if e, isNew := driftEvent(d, known[at(d)]); isNew {
			events = append(events, e)
		}
		if i+1 == len(now) || now[i+1].Cluster != d.Cluster {
			h.addLimited(d.Cluster, h.commitOn(d.Cluster), events)
			events = nil
		}
	}
}

// driftEvent returns the event for one object if it drifted again or its state has changed.
func driftEvent(d, was *Drift) (e Event, isNew bool) {
	if was != nil && was.State == d.State && was.Count >= d.Count {
		return Event{}, false
	}
	who := "somebody"
	if len(d.By) > 0 {
		who = event.Few(d.By, api.Actor.String)
	}
	did := " was changed by " + who + ": " + event.Few(d.Paths, func(p api.Difference) string { return p.Path })
	if d.Deleted {
		did = " was deleted"
	}
	object := d.ID().String()
	switch d.State {
	case api.DriftStanding, api.DriftHeld:
		return event.Warning(api.DriftFound, object+did+"; it is left as it is"), true
	case api.DriftAdded:
		return event.Warning(api.DriftFound, object+": "+who+" has added "+event.Few(d.Paths, func(p api.Difference) string { return p.Path })+", which Git does not have; it is left as it is"), true
	case api.DriftContested:
		return event.Warning(api.DriftContestedReason, object+did+"; "+cmp.Or(d.Message, "another writer keeps reverting it")), true
	case api.DriftRepaired:
		if d.Addition {
			return event.Warning(api.DriftPutBack, object+": "+who+" had added "+event.Few(d.Paths, func(p api.Difference) string { return p.Path })+", which was removed"), true
		}
		return event.Warning(api.DriftPutBack, object+did+"; it was put back"), true
	case api.DriftAltered:
		return event.Warning(api.ValuesAltered, object+" is not stored as it is applied: "+event.Few(d.Paths, func(p api.Difference) string { return p.Path })+"; "+d.Message), true
	case api.DriftEnded:
		return event.Normal(api.DriftGone, object+" no longer differs from Git"), was != nil
	}
	return Event{}, false
}
