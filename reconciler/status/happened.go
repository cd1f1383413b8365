package status

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// reached are the events of a placement's conditions that become true, in the
// order of progress.
var reached = []struct{ typ, reason, message string }{
	{api.RolloutStarted, api.PlacementRolloutStarted, "Started rolling out the latest resources"},
	{api.Overridden, api.PlacementOverriddenSucceeded, "Placement has been successfully overridden"},
	{api.WorkSynchronized, api.PlacementWorkSynchronized, "Work(s) have been created or updated successfully for the selected cluster(s)"},
	{api.Applied, api.PlacementApplied, "Resources have been applied to the selected cluster(s)"},
	{api.Available, api.PlacementAvailable, "Resources are available on the selected cluster(s)"},
	{api.DiffReported, api.PlacementDiffReported, "Configuration differences have been reported on the selected cluster(s)"},
}

// A history compares what is told of a placement with what was told before.
type history struct {
	*builder
	// old is what was told before; nil if nothing was. Then the ledger has the
	// conditions that were told before a restart.
	old           *told
	before, after api.PlacementStatus
	events        []Event
}

// happened says what changed about a placement since it was last told of.
func (b *builder) happened(old *told, after api.PlacementStatus, drifts []Drift) []Event {
	h := &history{builder: b, old: old, after: after}
	if b.p.Pending { // nothing has happened yet
		h.warned()
		return aboutPlacement(b.p.Key, b.p.Record, b.Now, h.events)
	}
	if old != nil && old.of.Pending {
		h.old = nil // what was told before is what the ledger has
	}
	if old != nil && old.of.Spec != nil {
		h.before = old.status()
	}
	for _, r := range h.Plan.Renames {
		if r.To == b.p.Key {
			h.add(normal(api.PlacementRenamed, "The placement was renamed from "+r.From.String()+"; it keeps its clusters, revisions, stop and suspensions"))
		}
	}
	h.scheduling()
	for _, e := range reached {
		if h.turned(h.prefix() + e.typ) {
			h.add(normal(e.reason, e.message))
		}
	}
	if h.done(h.after) && !(h.old != nil && h.done(h.before) && h.fresh(h.before.Conditions[0])) && h.progressed() {
		h.add(normal(api.PlacementRolloutCompleted, "Placement has finished the rollout process and reached the desired status"))
	}
	h.stopping()
	if h.old != nil || b.record == nil || b.record.Transitions == nil {
		h.clusters()
		h.braked()
		h.notDeleted()
		h.drifted(drifts)
		h.warned()
	}
	return aboutPlacement(b.p.Key, b.p.Record, b.Now, h.events)
}

// add notes an event; one that names no commit is about the one in force.
func (h *history) add(e Event) {
	e.Commit = cmp.Or(e.Commit, h.Head.Commit.Hash)
	h.events = append(h.events, e)
}

func (h *history) fresh(c metav1.Condition) bool {
	return c.ObservedGeneration == h.p.Record.Generation
}

// was is the status that a condition of the placement had, of this generation
// of its spec.
func (h *history) was(typ string) string {
	if h.old == nil {
		if h.record == nil {
			return ""
		}
		return h.record.Transitions[typ].Status
	}
	if c := find(h.before.Conditions, typ); c != nil && h.fresh(*c) {
		return string(c.Status)
	}
	return ""
}

// turned reports whether a condition of the placement has become true.
func (h *history) turned(typ string) bool {
	c := find(h.after.Conditions, typ)
	return c != nil && c.Status == metav1.ConditionTrue && h.was(typ) != string(metav1.ConditionTrue)
}

// progressed reports whether any condition of the placement has become true.
func (h *history) progressed() bool {
	return slices.ContainsFunc(h.after.Conditions, func(c metav1.Condition) bool { return h.turned(c.Type) })
}

// done reports whether all that is expected of a placement is the case.
func (h *history) done(s api.PlacementStatus) bool {
	return isTrue(find(s.Conditions, h.prefix()+api.Scheduled)) && !slices.ContainsFunc(h.expected(), func(typ string) bool {
		return !isTrue(find(s.Conditions, h.prefix()+typ))
	})
}

// scheduling tells of the condition Scheduled: KubeFleet has no event for it.
func (h *history) scheduling() {
	now := find(h.after.Conditions, h.prefix()+api.Scheduled)
	old := find(h.before.Conditions, now.Type)
	switch {
	case h.old == nil && h.was(now.Type) == string(now.Status):
	case old != nil && old.Status == now.Status && old.Reason == now.Reason:
	case now.Status == metav1.ConditionTrue:
		h.add(normal(now.Reason, now.Message))
	default:
		h.add(warning(now.Reason, now.Message))
	}
}

// stopping tells when a failed update stops the rollout, and when it goes on.
func (h *history) stopping() {
	was, now := "", h.p.Rollout.Stopped
	if h.old != nil {
		was = h.old.of.Rollout.Stopped
	}
	switch {
	case was == now:
	case now == "":
		h.add(normal(api.RolloutResumed, "The rollout goes on: it had been stopped by cluster "+was))
	default:
		text := "The rollout is stopped: cluster " + now + " was available before its update, which failed"
		if c := h.p.On(now); c != nil && c.Failure != "" {
			text += ": " + c.Failure
		}
		e := warning(api.RolloutStopped, text)
		e.Cluster = now
		h.add(e)
	}
}

// braked tells of deletions that are held.
func (h *history) braked() {
	for _, c := range h.p.Clusters {
		now, pending := c.HeldDeletions()
		if pending || len(now) == 0 {
			continue
		}
		held := map[api.ID]bool{}
		if was := h.on(c.Binding.Cluster); was != nil && was.Seen() != nil {
			for _, b := range was.Seen().Braked {
				held[b.ID] = true
			}
		}
		var events []Event
		for _, b := range now {
			if !held[b.ID] {
				events = append(events, warning(api.DeletionHeld, b.ID.String()+": "+b.Why))
			}
		}
		h.some(c.Binding.Cluster, c.Binding.Assigned.Commit, events)
	}
}

// notDeleted tells of objects that a cluster does not let go.
func (h *history) notDeleted() {
	for _, c := range h.p.Clusters {
		now := c.Seen()
		if now == nil {
			continue
		}
		known := map[api.ID]bool{}
		if was := h.on(c.Binding.Cluster); was != nil && was.Seen() != nil {
			for _, f := range was.Seen().DeletionErrors {
				known[f.ID] = true
			}
		}
		var events []Event
		for _, f := range now.DeletionErrors {
			if !known[f.ID] {
				events = append(events, warning(api.DeletionFailed, f.ID.String()+": "+f.Message))
			}
		}
		h.some(c.Binding.Cluster, c.Binding.Assigned.Commit, events)
	}
}

// warned tells of what a person should look at.
func (h *history) warned() {
	for _, w := range h.p.Warnings {
		if h.old == nil || !slices.Contains(h.old.of.Warnings, w) {
			h.add(warning(api.PlacementWarning, w.Error()))
		}
	}
}

// on is what the placement meant for a cluster before; nil if it did not hold
// it.
func (h *history) on(cluster string) *plan.OnCluster {
	if h.old == nil {
		return nil
	}
	return h.old.of.On(cluster)
}

// fewEvents is how many events of one sort are told of one cluster at once.
const fewEvents = 10

// some adds events of one cluster, and only counts those that are too many.
func (h *history) some(cluster, commit string, events []Event) {
	for i, e := range events {
		if i == fewEvents-1 && len(events) > fewEvents {
			e.Message += fmt.Sprintf(" (and %d more objects)", len(events)-fewEvents)
		}
		if i == fewEvents {
			return
		}
		e.Cluster, e.Commit = cluster, commit
		h.add(e)
	}
}

func find(conditions []metav1.Condition, typ string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == typ {
			return &conditions[i]
		}
	}
	return nil
}

// leaving says what changed about a placement that is gone from the repository:
// once that it is, and what holds it up.
func leaving(p *plan.Placement, old *told, in Input) []Event {
	h := &history{builder: &builder{Input: in, p: p}, old: old}
	switch {
	case old != nil && old.of.Spec == nil && old.of.Unclear == "":
	case p.Record.Into != (api.PlacementKey{}):
		h.add(normal(api.PlacementRenamed, "The placement goes on as "+p.Record.Into.String()+"; clusters hand over to it what they hold"))
	case p.Unclear == "":
		h.add(normal(api.PlacementDeleted, deletedText(p)))
	}
	h.braked()
	h.notDeleted()
	return aboutPlacement(p.Key, p.Record, in.Now, h.events)
}

// left reports that a placement is removed completely. A renamed placement continues under
// its new name, and one about which nothing was decided had nothing to remove: neither has
// an event.
func left(p *plan.Placement, in Input) []Event {
	renamed := func(r ledger.Rename) bool { return r.From == p.Key }
	if p.Pending || p.Record.Into != (api.PlacementKey{}) || slices.ContainsFunc(in.Plan.Renames, renamed) {
		return nil
	}
	e := normal(api.PlacementCleanupFinalizerRemoved, "Deleted the snapshots and removed the placement cleanup finalizer")
	return aboutPlacement(p.Key, p.Record, in.Now, []Event{e})
}
