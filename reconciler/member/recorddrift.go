package member

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
)

// RestoreDrifts sets the recorded drift of the cluster, as loaded from a ledger. It may be
// called before Run, and does not change its argument.
func (a *Agent) RestoreDrifts(drifts map[api.PlacementKey][]ledger.Drift) {
	for p, list := range drifts {
		for _, d := range list {
			a.memory.Put(p, d)
		}
	}
}

// note records the observed drift of the object of a task. anew says that the object has
// drifted once more.
func (s *session) note(t task, state api.DriftState, now ledger.Drift, anew bool) {
	now.Message = connection.Cut(now.Message)
	s.memory.Record(t.placement, t.manifest, state, now, anew)
}

// recordDrift records the drift that the outcome of a task shows.
func (s *session) recordDrift(o *outcome) {
	p, id := o.placement, o.manifest.ID
	was := s.memory.State(p, id)
	ours := o.item != nil && o.item.Hash != "" && !s.works.reports(p)
	contest := contested(o.rivals)
	back := o.putsBack()
	switch {
	case back:
		s.putBack(o)
	case o.drift && o.written != nil && !o.repairs():
		s.unflip(id)
	}
	switch {
	case o.err != nil || !ours:
	case o.gone:
		s.recordHeldDeletion(o)
	case len(contest) > 0:
		o.diffs = append(o.diffs, contest...)
		s.note(o.task, api.DriftContested, ledger.Drift{
			Message: contestMessage(o.rivals), Generation: o.gen, Paths: o.diffs, By: diff.Actors(o.diffs),
		}, was != api.DriftContested && !back)
		if was != api.DriftContested {
			s.cfg.Log.Warn("object is contested: an autoscaler scales it, and the manifest does too; it is left to the autoscaler", "cluster", s.cfg.Name,
				"placement", p.String(), "object", id.String(), "by", contestMessage(o.rivals))
		}
	case len(o.diffs) > 0:
		state, mode := api.DriftStanding, ""
		if o.held {
			state, mode = api.DriftHeld, s.driftRule(o.task).String()
		}
		s.note(o.task, state, ledger.Drift{
			Mode: mode, Message: o.cond.Message, Generation: o.gen, Paths: o.diffs, By: diff.Actors(o.diffs),
		}, was != state)
		if was != state {
			s.cfg.Metrics.Undone.WithLabelValues(s.cfg.Name).Inc()
			s.cfg.Log.Warn("object differs from what was applied, and is left as it is", "cluster", s.cfg.Name, "placement", p.String(),
				"object", id.String(), "by", drift.By(diff.Actors(o.diffs)), "paths", drift.Paths(o.diffs))
		}
	case o.written != nil && o.live != nil && leavesFields(o.manifest):
		if left := ignoredIn(o.task, o.live); len(left) > 0 {
			s.note(o.task, api.DriftIgnored, ignoredDrift(o.gen, left), was != api.DriftIgnored)
		}
	}
	if o.written != nil && len(contest)+len(o.diffs) == 0 {
		s.noteAltered(o.task, o.gen, o.altered)
	}
}

// putsBack reports whether the write corrected drift. If no field had changed, a write to a
// contested object, or to an existing one that leaves fields to others, only gives up the
// ownership of fields.
func (o *outcome) putsBack() bool {
	if !o.repairs() {
		return false
	}
	changed := len(o.before.Paths) > 0
	return changed || len(o.rivals) == 0 && (o.before.Deleted || !leavesFields(o.manifest))
}

// putBack records that drift was corrected.
func (s *session) putBack(o *outcome) {
	what, change := o.before, "edited"
	if r, known := s.resolution(o.placement, o.manifest.ID); known {
		what.Message = r.Message
	}
	if what.Deleted {
		change = "deleted"
	}
	// a held drift was counted when it was found
	s.note(o.task, api.DriftRepaired, what, s.memory.State(o.placement, o.manifest.ID) != api.DriftHeld)
	s.cfg.Metrics.Repairs.WithLabelValues(s.cfg.Name, change).Inc()
	attrs := []any{"cluster", s.cfg.Name, "placement", o.placement.String(),
		"object", o.manifest.ID.String(), "change", change, "by", drift.By(what.By), "paths", drift.Paths(what.Paths)}
	if what.Message != "" {
		attrs = append(attrs, "reason", what.Message)
	}
	s.cfg.Log.Info("put back what somebody changed", attrs...)
}

// ignoredMessage says why a difference is not corrected.
const ignoredMessage = "left alone, as " + api.IgnoreFieldsAnnotation + " asks"

// ignoredDrift returns the record of differences in fields that an object leaves to others.
func ignoredDrift(generation int64, left []api.Difference) ledger.Drift {
	return ledger.Drift{Message: ignoredMessage, Generation: generation, Paths: left, By: diff.Actors(left)}
}

// ignoredIn returns the differences in fields that an object leaves to others.
func ignoredIn(t task, live *unstructured.Unstructured) []api.Difference {
	return diff.Differences(live, api.FieldManager, diff.Ignored(t.manifest.Object.Object, live))
}

// ended records the end of drift that was not corrected here: it was standing and is no longer
// observed.
func (s *session) ended(p api.PlacementKey) {
	if !s.done[p] || s.conn.CutOff() {
		return
	}
	for id, d := range s.memory[p] {
		w, isWanted := s.wanted.of(id)
		switch {
		case !isWanted || w.placement != p || s.trouble[id] != nil || s.live.Of(id) == nil || s.suspects[id]:
			continue
		case d.State == api.DriftIgnored && leavesFields(w.manifest) || d.State == api.DriftAltered:
			continue
		case drift.Lasting(d.State) == 1:
			s.memory.End(p, d)
		}
	}
}
