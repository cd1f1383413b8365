package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// reportWorks reports the state of all works if it has changed.
func (a *agent) reportWorks(works []*work.Work) {
	var later time.Time
	a.done = works
	for _, w := range works {
		if w.Unreleased() {
			continue
		}
		o, changes := a.workSeen(w)
		if later.IsZero() || !changes.IsZero() && changes.Before(later) {
			later = changes
		}
		a.send(o)
	}
	if !later.IsZero() {
		a.after(time.Until(later), func() {
			if a.pass == nil && a.healthy && a.leaving == nil && !a.foreign() {
				a.reportWorks(a.done)
			}
		})
	}
}

// heldDeletions returns the objects that a work no longer has and whose deletion is held.
func (a *agent) blockedDeletions(w *work.Work) []protocol.BlockedDeletion {
	inv := a.inventories[w.Placement]
	if inv == nil || w.Keep || w.Strategy.Type == api.ReportDiff || inv.abandon && w.Remove {
		return nil
	}
	var out []protocol.BlockedDeletion
	for _, id := range slices.SortedFunc(maps.Keys(inv.items), api.ID.Compare) {
		if why := w.DeletionBlocked(id, a.deletedNamespaces(w)); why != "" && !a.wantedByAny(id) {
			out = append(out, protocol.BlockedDeletion{ID: id, Why: why})
		}
	}
	return out
}

// workSeen returns the report of a work, and when that changes by itself; zero if it does not.
func (a *agent) workSeen(w *work.Work) (o protocol.WorkSeen, changes time.Time) {
	now := time.Now()
	o = protocol.WorkSeen{Cluster: a.name, Placement: w.Placement, At: a.d.w.now(), Wrote: a.wrote[w.Placement], WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Compared: w.Strategy.Type == api.ReportDiff, Total: len(w.Manifests), Incidents: protocol.Incidents{BlockedDeletions: a.blockedDeletions(w)}.OrNil()}}
	delete(a.wrote, w.Placement)
	if w.Remove {
		o.Removed = a.inventories[w.Placement] == nil
		return o, changes
	}
	if !writes(w) {
		return o, changes
	}
	for _, m := range w.Manifests {
		state := protocol.ObjectState{ID: m.ID, Version: "v1", Envelope: m.Envelope, Applied: protocol.Verdict{OK: true}}
		if !a.applied(w, m) && w.SuspendedReason(m.ID) != "" {
			state.Applied = protocol.Verdict{Reason: api.Suspended, Cause: w.SuspendedReason(m.ID)}
			o.Exceptions = append(o.Exceptions, state)
			continue
		}
		if !a.applied(w, m) {
			state.Applied = protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "the API server refuses it"}
			if t := a.objects[m.ID]; t != nil && !t.goneAt.IsZero() {
				state.Applied.Cause, state.Pending = "it is being deleted", true
			}
			o.Exceptions = append(o.Exceptions, state)
			continue
		}
		stays, named := a.objects[m.ID].stays(m)
		if named {
			stays.ID, stays.Version, stays.Envelope = state.ID, state.Version, state.Envelope
			state = stays
		}
		h := a.objects[m.ID].health(now)
		if h == untracked {
			o.Untrackable++
		}
		switch h {
		case healthy, untracked:
			if state.Available.OK = true; named {
				o.Exceptions = append(o.Exceptions, state)
			}
			continue
		case pending:
			if at := a.objects[m.ID].changesAt(now); changes.IsZero() || at.Before(changes) {
				changes = at
			}
		case failed:
			state.Failure = "its pods cannot start"
		}
		if w.SuspendedReason(m.ID) != "" {
			state.Applied.Reason = api.Suspended
		}
		state.Available = protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "not yet"}
		o.Exceptions = append(o.Exceptions, state)
	}
	slices.SortFunc(o.Exceptions, func(a, b protocol.ObjectState) int { return a.ID.Compare(b.ID) })
	return o, changes
}
