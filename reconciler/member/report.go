package member

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A reporter reports the state of placements.
type reporter struct {
	*cluster
	desired.View
	owned    owned.View
	progress progress.View
	blocker  *deletionBlocker
	drift    drift.View
	drifts   *driftRecorder
	record   *recorder
	// serials are the serial numbers of the inventories.
	serials *inventory.Serials
}

// all reports the state of every placement.
func (r *reporter) all(ctx context.Context) {
	for _, w := range r.Works() {
		r.report(ctx, w.Placement)
	}
}

// touched reports the state of the placements that some objects belong to.
func (r *reporter) touched(ctx context.Context, ids map[api.ID]bool) {
	r.some(ctx, map[api.PlacementKey]bool{}, ids)
}

// some reports the state of some placements, and of those that some objects belong to, which it adds to them.
func (r *reporter) some(ctx context.Context, placements map[api.PlacementKey]bool, ids map[api.ID]bool) {
	for id := range ids {
		if w, ok := r.Wanted().Of(id); ok {
			placements[w.Placement] = true
		}
	}
	for _, w := range r.Works() {
		p := w.Placement
		if w.Remove || placements[p] || r.progress.HasPruned(p) {
			r.report(ctx, p)
		}
	}
}

func (r *reporter) report(ctx context.Context, p api.PlacementKey) {
	if ctx.Err() != nil {
		return
	}
	w := r.Works().Of(p)
	if w.Unreleased() {
		return
	}
	o := protocol.WorkSeen{Cluster: r.cfg.Name, Placement: p, At: time.Now(), WorkState: protocol.WorkState{Revision: w.Revision, Done: !r.progress.IsUntried(p), Compared: r.Works().OnlyCompares(p), Total: len(w.Manifests)}}
	o.Inventory = r.serials.Of(p)
	inv, has := r.owned.Of(p)
	o.Removed = w.Remove && !has
	var unusual protocol.Incidents
	unusual.Lingering, unusual.Collecting, unusual.Finalizing = r.lingering(p)
	unusual.Terminating, unusual.Waiting = r.terminating(unusual.Lingering), r.deletionWaits(p)
	for _, m := range w.Manifests {
		state, exception := r.state(p, m.ID)
		if state.Available.Reason == string(health.NotTrackable) {
			o.Untrackable++
		}
		if exception {
			state.ID, state.Version, state.Envelope = m.ID, m.Object.Content.GroupVersionKind().Version, m.Envelope
			o.Exceptions = append(o.Exceptions, state)
		}
	}
	r.drifts.endUnobserved(p)
	unusual.Drifts = r.drift.List(p)
	unusual.Deletions, o.Wrote = r.record.reported(p)
	if has {
		for id, b := range r.blocker.blocked {
			if inv.Has(id) {
				unusual.BlockedDeletions = append(unusual.BlockedDeletions, protocol.BlockedDeletion{ID: id, Why: b.why})
			}
		}
		unusual.DeletionErrors = r.deletionErrors(inv)
		slices.SortFunc(unusual.BlockedDeletions, func(a, b protocol.BlockedDeletion) int { return a.ID.Compare(b.ID) })
	}
	slices.SortFunc(o.Exceptions, func(a, b protocol.ObjectState) int { return a.ID.Compare(b.ID) })
	o.Incidents = unusual.OrNil()
	r.cfg.Report(o)
}

// lingering returns the undesired objects of a placement that are terminating, those of them
// that wait for the garbage collector, and those that have finalizers, all sorted.
func (r *reporter) lingering(p api.PlacementKey) (all, collecting []api.ID, finalizing []protocol.Finalizing) {
	inv, found := r.owned.Of(p)
	if !found {
		return nil, nil, nil
	}
	for it := range inv.All() {
		l := r.live.Of(it.ID())
		if _, wanted := r.Wanted().Of(it.ID()); wanted || l == nil || !l.Terminating {
			continue
		}
		all = append(all, it.ID())
		if l.Foreground {
			collecting = append(collecting, it.ID())
		}
		if l.Finalizers != "" {
			finalizing = append(finalizing, protocol.Finalizing{ID: it.ID(), Finalizers: l.Finalizers})
		}
	}
	return all, collecting, finalizing
}

// terminating returns since when some terminating objects are, and why they still exist.
func (r *reporter) terminating(lingering []api.ID) (out []protocol.Terminating) {
	for _, id := range lingering {
		l := r.live.Of(id)
		if l.Deleted == 0 {
			continue
		}
		t := protocol.Terminating{ID: id, Since: time.Unix(l.Deleted, 0).UTC()}
		f, _ := r.progress.Failure(id)
		t.Why = f.Stays
		out = append(out, t)
	}
	return out
}

// deletionWaits returns what the deletions of a placement wait for, sorted.
func (r *reporter) deletionWaits(p api.PlacementKey) []protocol.DeletionWait {
	byFirst := map[deletion.Object]protocol.DeletionWait{}
	for w, first := range r.progress.Waiting() {
		if w.Placement != p {
			continue
		}
		d, known := byFirst[first]
		if !known || w.ID.Compare(d.Example) < 0 {
			d.Example = w.ID
		}
		d.Objects, d.For, d.Of = d.Objects+1, first.ID, first.Placement
		byFirst[first] = d
	}
	return slices.SortedFunc(maps.Values(byFirst), func(a, b protocol.DeletionWait) int {
		return cmp.Or(a.For.Compare(b.For), a.Of.Compare(b.Of))
	})
}

// deletionErrors returns the objects of an inventory that could not be deleted, and why.
func (r *reporter) deletionErrors(inv inventory.View) []protocol.DeletionError {
	var out []protocol.DeletionError
	for id, f := range r.progress.Failures() {
		if _, blocked := r.blocker.blocked[id]; f.NotDeleted != "" && !blocked && inv.Has(id) {
			out = append(out, protocol.DeletionError{ID: id, Message: f.NotDeleted})
		}
	}
	slices.SortFunc(out, func(a, b protocol.DeletionError) int { return a.ID.Compare(b.ID) })
	return out
}

// state returns the state of an object, and whether it has to be in the report.
func (r *reporter) state(p api.PlacementKey, id api.ID) (protocol.ObjectState, bool) {
	var out protocol.ObjectState
	w, _ := r.Wanted().Of(id)
	if w.Placement != p {
		out.Applied = protocol.Verdict{Reason: api.FailedToTakeOver, Sentence: api.SaysNotApplied,
			Cause: "another placement of the fleet, " + w.Placement.String() + ", owns this object on the cluster"}
		return out, true
	}
	f, failed := r.progress.Failure(id)
	if failed {
		out.Applied = protocol.Verdict{OK: f.Cond.Status == metav1.ConditionTrue, Reason: f.Cond.Reason, Cause: f.Cond.Cause, Sentence: f.Cond.Sentence, Since: f.Since}
		out.Diffs, out.Drift, out.FirstSeen, out.LastSeen, out.Generation = f.Diffs, f.Drift, f.FirstSeen, f.LastSeen, f.Generation
		if !out.Applied.OK {
			out.Pending = f.Pending
			return out, true
		}
	} else {
		out.Applied = protocol.Verdict{OK: true, Reason: api.ManifestApplied}
	}
	if r.Works().Of(p).Strategy.Type == api.ReportDiff {
		out.Available.OK = true // availability is not checked
		return out, failed
	}
	if _, _, exists := r.live.Health(id); !exists {
		if r.drift.IsLeftDeleted(p, id) {
			out.Available.OK = true // it counts as available
			return out, failed
		}
		if it := r.owned.Item(p, id); r.progress.HasRun(w.Manifest, it) {
			out.Available, out.Failure = ranAvailability(w.Manifest, it.End)
			return out, failed || !out.Available.OK
		}
		if state, _ := r.owned.MayApply(w); state == hooks.NotDue {
			out.Available = protocol.Verdict{OK: true, Reason: api.ManifestNotTrackable}
			return out, failed
		}
	}
	r.availability(&out, w)
	if !out.Available.OK && r.Works().SuspendedReason(p, id) != "" {
		out.Applied.Reason = api.Suspended // whoever rates the cluster ignores it
	}
	return out, failed || !out.Available.OK
}

// ranAvailability returns whether an object is available that has run and was then deleted by a
// controller, and why it failed, if it did.
func ranAvailability(m *work.Manifest, end inventory.End) (protocol.Verdict, string) {
	if end != inventory.Failed {
		return protocol.Verdict{OK: true, Reason: api.ManifestNotTrackable}, ""
	}
	why := fmt.Sprintf("the %s failed, and %s has deleted it", m.ID.Kind, controllers.RunOf(m.Object.Content).Owner)
	return protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: why, Sentence: api.SaysNotAvailable}, why
}

// availability sets whether an applied object is available.
func (r *reporter) availability(out *protocol.ObjectState, w desired.Object) {
	id := w.Manifest.ID
	h, generation, ok := r.live.Health(id)
	if !ok && r.watch.Of(w.GVK()).Refused() {
		h, ok = r.watch.Of(w.GVK()).HealthUnread(), true // it was applied, and is trusted to be there
	}
	if !ok {
		out.Available = protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "not seen on the cluster yet"}
		out.Pending = !r.watch.Of(w.GVK()).Complete()
		return
	}
	out.Generation = generation
	found := r.pods.Observe(id, h, generation)
	if found.Blocked {
		h.State = health.NotAvailableYet
	}
	if out.Available = (protocol.Verdict{OK: h.Counts(), Reason: string(h.State)}); out.Available.OK {
		return
	}
	out.Available.Cause, out.Available.Sentence = joined(r.unquoted(id, h.Message), found.Why), h.Sentence()
	out.Pod = found.Pod
	switch {
	case found.Failed:
		out.Failure = found.Why
	case h.Failure != "":
		out.Failure = joined(r.unquoted(id, h.Failure), found.Why)
	}
}

// unquoted returns the message of an object's status without what it may quote of Secrets: the
// messages of controllers and operators are not under our control.
func (r *reporter) unquoted(id api.ID, message string) string {
	if message == "" || api.BuiltInGroup(id.Group) && pods.IsWorkload(id.GroupKind()) && !strings.Contains(message, ": ") {
		return message
	}
	return pods.Scrub(message, r.Secrets())
}

// askWhy has the pods read of workloads that stay unavailable.
func (r *reporter) askWhy(ctx context.Context) {
	r.pods.Ask(ctx, func(id api.ID) (*unstructured.Unstructured, types.UID) {
		w, isWanted := r.Wanted().Of(id)
		l := r.live.Of(id)
		if !isWanted || l == nil {
			return nil, ""
		}
		return w.Manifest.Object.Content, l.UID
	}, r.Secrets)
}

// joined joins two clauses, each of which may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
