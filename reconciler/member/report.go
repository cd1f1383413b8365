package member

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
)

// reportAll reports the state of every placement.
func (s *session) reportAll(ctx context.Context) {
	for p := range s.works {
		s.report(ctx, p)
	}
}

// reportTouched reports the state of the placements that some objects belong to.
func (s *session) reportTouched(ctx context.Context, ids map[api.ID]bool) {
	placements := map[api.PlacementKey]bool{}
	for id := range ids {
		if w, ok := s.wanted.of(id); ok {
			placements[w.placement] = true
		}
	}
	for p, w := range s.works {
		if w.Remove || placements[p] || s.pruned[p] {
			s.report(ctx, p)
		}
	}
}

func (s *session) report(ctx context.Context, p api.PlacementKey) {
	if ctx.Err() != nil {
		return
	}
	delete(s.pruned, p)
	w := s.works[p]
	if w.Unreleased() {
		return
	}
	o := ledger.WorkSeen{Cluster: s.cfg.Name, Placement: p, At: time.Now(), Revision: w.Revision, Done: s.done[p], Compared: s.works.reports(p), Total: len(w.Manifests)}
	o.Removed = w.Remove && s.inv[p] == nil
	o.Lingering, o.Collecting, o.Finalizing = s.lingering(p)
	for _, m := range w.Manifests {
		state, exception := s.state(p, m.ID)
		if state.Available.Reason == string(health.NotTrackable) {
			o.Untrackable++
		}
		if exception {
			state.ID, state.Version, state.Envelope = m.ID, m.Object.Object.GroupVersionKind().Version, m.Envelope
			o.Exceptions = append(o.Exceptions, state)
		}
	}
	s.ended(p)
	o.Drifts, o.Deletions = s.memory.List(p), s.deletions.take(p)
	if inv := s.inv[p]; inv != nil {
		for id, b := range s.braked {
			if inv.Items.Has(id) {
				o.Braked = append(o.Braked, ledger.Braked{ID: id, Why: b.why})
			}
		}
		o.DeletionErrors = s.deletionErrors(inv)
		slices.SortFunc(o.Braked, func(a, b ledger.Braked) int { return a.ID.Compare(b.ID) })
	}
	slices.SortFunc(o.Exceptions, func(a, b ledger.ObjectState) int { return a.ID.Compare(b.ID) })
	s.cfg.Report(o)
}

// lingering returns the undesired objects of a placement that are terminating, those of them
// that wait for the garbage collector, and those that have finalizers.
func (s *session) lingering(p api.PlacementKey) (all, collecting []api.ID, finalizing []ledger.Finalizing) {
	inv := s.inv[p]
	if inv == nil {
		return nil, nil, nil
	}
	for it := range inv.Items.All() {
		l := s.live.Of(it.ID())
		if _, wanted := s.wanted.of(it.ID()); wanted || l == nil || !l.Terminating {
			continue
		}
		all = append(all, it.ID())
		if l.Foreground {
			collecting = append(collecting, it.ID())
		}
		if l.Finalizers != "" {
			finalizing = append(finalizing, ledger.Finalizing{ID: it.ID(), Finalizers: l.Finalizers})
		}
	}
	slices.SortFunc(all, api.ID.Compare)
	slices.SortFunc(collecting, api.ID.Compare)
	slices.SortFunc(finalizing, func(a, b ledger.Finalizing) int { return a.ID.Compare(b.ID) })
	return all, collecting, finalizing
}

// deletionErrors returns the objects of an inventory that could not be deleted, and why.
func (s *session) deletionErrors(inv *inventory.Inventory) []ledger.DeletionError {
	var out []ledger.DeletionError
	for id, t := range s.trouble {
		if _, held := s.braked[id]; t.notDeleted != "" && !held && inv.Items.Has(id) {
			out = append(out, ledger.DeletionError{ID: id, Message: t.notDeleted})
		}
	}
	slices.SortFunc(out, func(a, b ledger.DeletionError) int { return a.ID.Compare(b.ID) })
	return out
}

// state returns the state of an object, and whether it has to be in the report.
func (s *session) state(p api.PlacementKey, id api.ID) (ledger.ObjectState, bool) {
	var out ledger.ObjectState
	if w, _ := s.wanted.of(id); w.placement != p {
		out.Applied = ledger.Verdict{Reason: api.FailedToTakeOver,
			Message: "Failed to apply the manifest (error: another placement of the fleet, " + w.placement.String() + ", holds this object on the cluster)"}
		return out, true
	}
	t := s.trouble[id]
	if t != nil {
		out.Applied = ledger.Verdict{OK: t.cond.Status == metav1.ConditionTrue, Reason: t.cond.Reason, Message: t.cond.Message, Since: t.since}
		out.Diffs, out.Drift, out.FirstSeen, out.LastSeen, out.Generation = t.diffs, t.drift, t.first, t.last, t.gen
		if !out.Applied.OK {
			out.Pending = t.pending
			return out, true
		}
	} else {
		out.Applied = ledger.Verdict{OK: true, Reason: api.ManifestApplied}
	}
	if s.works[p].Strategy.Type == api.ReportDiff {
		out.Available.OK = true // availability is not checked
		return out, t != nil
	}
	if s.leftDeleted(p, id) && s.live.Of(id) == nil {
		out.Available.OK = true // it counts as available
		return out, t != nil
	}
	s.availability(&out, id)
	if !out.Available.OK && s.works.spared(p, id) != "" {
		out.Applied.Reason = api.Suspended // whoever rates the cluster ignores it
	}
	return out, t != nil || !out.Available.OK
}

// availability sets whether an applied object is available.
func (s *session) availability(out *ledger.ObjectState, id api.ID) {
	h, generation, ok := s.live.Health(id)
	if !ok {
		out.Available = ledger.Verdict{Reason: api.ManifestNotAvailableYet, Message: "not seen on the cluster yet"}
		return
	}
	out.Generation = generation
	cond := h.Condition()
	out.Available = ledger.Verdict{OK: h.Counts(), Reason: string(h.State), Message: cond.Message}
	why, failed := s.pods.Observe(id, h, generation)
	if out.Available.OK {
		return
	}
	if missing := joined(s.unquoted(id, h.Message), why); missing != "" {
		out.Available.Message += " (" + missing + ")"
	}
	switch {
	case failed:
		out.Failure = why
	case h.Failure != "":
		out.Failure = joined(s.unquoted(id, h.Failure), why)
	}
}

// askWhy has the pods read of workloads that stay unavailable.
func (s *session) askWhy(ctx context.Context) {
	s.pods.Ask(ctx, func(id api.ID) *unstructured.Unstructured {
		w, isWanted := s.wanted.of(id)
		if !isWanted {
			return nil
		}
		return w.manifest.Object.Object
	}, s.secrets)
}

// joined joins two clauses, each of which may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// seen returns the observation of a probe, with the permissions that are missing.
func (s *session) seen(p probe.Result) ledger.ClusterSeen {
	seen := p.Seen(s.cfg.Name)
	switch forbidden := s.access.Forbidden(); {
	case p.Err == nil:
		seen.Forbidden = forbidden
	case apierrors.IsForbidden(p.Err) && len(forbidden) > 0:
		seen.Forbidden, seen.Error = forbidden, (&ForbiddenError{p.Err, forbidden}).Error()
	}
	return seen
}

// publishProbe reports the result of a probe, and logs what has changed.
func (s *session) publishProbe(p probe.Result) {
	s.access.RecordRefusal(p.Err)
	s.cfg.Report(s.seen(p))
	s.answers(p.Err)
}
