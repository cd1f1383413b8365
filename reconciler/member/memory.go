package member

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A memory records the drift of objects, by placement. It outlives connections and, through the
// ledger, the agent.
type memory map[api.PlacementKey]map[api.ID]ledger.Drift

// RestoreDrifts gives an agent the drifts of its cluster that a ledger has. It may be called
// before Run, and does not change its argument.
func (a *Agent) RestoreDrifts(drifts map[api.PlacementKey][]ledger.Drift) {
	for p, list := range drifts {
		for _, d := range list {
			a.memory.put(p, d)
		}
	}
}

// put records a drift. If there are too many, it drops the one not seen for the longest time,
// those that have ended first; of held drifts, which await a decision, it drops the newest.
func (m memory) put(p api.PlacementKey, d ledger.Drift) {
	of := m[p]
	if of == nil {
		of = map[api.ID]ledger.Drift{}
		m[p] = of
	}
	of[d.ID] = d
	if len(of) <= mostDrifts {
		return
	}
	limit, first := mostDrifts, func(a, b ledger.Drift) int {
		return cmp.Or(cmp.Compare(lasting(a.State), lasting(b.State)), a.LastSeen.Compare(b.LastSeen), a.ID.Compare(b.ID))
	}
	if d.State == api.DriftHeld {
		limit, first = mostHeld, func(a, b ledger.Drift) int { return cmp.Or(b.FirstSeen.Compare(a.FirstSeen), b.ID.Compare(a.ID)) }
	}
	var same []ledger.Drift
	for _, other := range of {
		if (other.State == api.DriftHeld) == (d.State == api.DriftHeld) {
			same = append(same, other)
		}
	}
	if len(same) > limit {
		delete(of, slices.MinFunc(same, first).ID)
	}
}

// lasting is 1 if the object still differs.
func lasting(s api.DriftState) int {
	if s == api.DriftRepaired || s == api.DriftEnded {
		return 0
	}
	return 1
}

// list returns the recorded drifts of a placement, sorted by ID.
func (m memory) list(p api.PlacementKey) []ledger.Drift {
	var out []ledger.Drift
	for _, d := range m[p] {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b ledger.Drift) int { return a.ID.Compare(b.ID) })
	return out
}

// forget drops the drifts of objects that a placement no longer has.
func (m memory) forget(works map[api.PlacementKey]work.Work) {
	for p, of := range m {
		w, told := works[p]
		if !told || w.Remove {
			delete(m, p)
			continue
		}
		if w.Keep {
			continue // its objects are unknown
		}
		has := make(map[api.ID]bool, len(w.Manifests))
		for _, o := range w.Manifests {
			has[o.ID] = true
		}
		for id := range of {
			if !has[id] {
				delete(of, id)
			}
		}
	}
}

// note records a drift of the object of a task: now is what is observed. anew says that the
// object has drifted once more.
func (s *session) note(t task, state api.DriftState, now ledger.Drift, anew bool) {
	id, at := t.manifest.ID, time.Now()
	d, known := s.memory[t.placement][id]
	if !known {
		d = ledger.Drift{ID: id, FirstSeen: at, Since: at}
	}
	if lasting(d.State) == 0 {
		d.Since = at
	}
	d.Version, d.Envelope = t.manifest.Object.Object.GroupVersionKind().Version, t.manifest.Envelope
	d.State, d.Mode, d.LastSeen, d.Message = state, now.Mode, at, connection.Cut(now.Message)
	if anew {
		d.Count++
	}
	if anew || now.Paths != nil {
		d.Generation, d.Deleted, d.Paths, d.By = now.Generation, now.Deleted, shortened(now.Paths), now.By
	}
	s.memory.put(t.placement, d)
}

// end records that a drift has ended.
func (m memory) end(p api.PlacementKey, d ledger.Drift) {
	d.State, d.Mode, d.Message = api.DriftEnded, "", ""
	m.put(p, d)
}

// state returns the recorded state of an object; empty if there is none.
func (m memory) state(p api.PlacementKey, id api.ID) api.DriftState { return m[p][id].State }

// recordDrift records the drift that the outcome of a task shows.
func (s *session) recordDrift(o *outcome) {
	p, id := o.placement, o.manifest.ID
	was := s.memory.state(p, id)
	ours := o.item != nil && o.item.Hash != "" && !s.reports(p)
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
				"object", id.String(), "by", by(diff.Actors(o.diffs)), "paths", pathsOf(o.diffs))
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

// putsBack reports whether the write corrected a drift. If no field had changed, a write to a
// contested object, or to an existing one that leaves fields to others, only gives up the
// ownership of fields.
func (o *outcome) putsBack() bool {
	if !o.repairs() {
		return false
	}
	changed := len(o.before.Paths) > 0
	return changed || len(o.rivals) == 0 && (o.before.Deleted || !leavesFields(o.manifest))
}

// putBack records that a drift was corrected.
func (s *session) putBack(o *outcome) {
	what, change := o.before, "edited"
	if r, known := s.resolution(o.placement, o.manifest.ID); known {
		what.Message = r.Message
	}
	if what.Deleted {
		change = "deleted"
	}
	// a held drift was counted when it was found
	s.note(o.task, api.DriftRepaired, what, s.memory.state(o.placement, o.manifest.ID) != api.DriftHeld)
	s.cfg.Metrics.Repairs.WithLabelValues(s.cfg.Name, change).Inc()
	attrs := []any{"cluster", s.cfg.Name, "placement", o.placement.String(),
		"object", o.manifest.ID.String(), "change", change, "by", by(what.By), "paths", pathsOf(what.Paths)}
	if what.Message != "" {
		attrs = append(attrs, "reason", what.Message)
	}
	s.cfg.Log.Info("put back what somebody changed", attrs...)
}

// ignoredMessage says why a difference is not corrected.
const ignoredMessage = "left alone, as " + api.IgnoreFieldsAnnotation + " asks"

// ignoredDrift is the record of differences in fields that an object leaves to others.
func ignoredDrift(generation int64, left []api.Difference) ledger.Drift {
	return ledger.Drift{Message: ignoredMessage, Generation: generation, Paths: left, By: diff.Actors(left)}
}

// ignoredIn returns the differences in fields that an object leaves to others.
func ignoredIn(t task, live *unstructured.Unstructured) []api.Difference {
	return diff.Differences(live, api.FieldManager, diff.Ignored(t.manifest.Object.Object, live))
}

// ended records the end of drifts that nobody corrected here: those that were standing and are
// no longer observed.
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
		case lasting(d.State) == 1:
			s.memory.end(p, d)
		}
	}
}

// shortened keeps the first of many differences, and the beginning of long values.
func shortened(list []api.Difference) []api.Difference {
	rest := len(list) - mostPaths
	out := slices.Clone(list[:min(len(list), mostPaths)])
	for i := range out {
		out[i].ValueInHub, out[i].ValueInMember = health.Cut(out[i].ValueInHub, mostValue), health.Cut(out[i].ValueInMember, mostValue)
	}
	if rest > 0 {
		last := &out[len(out)-1]
		last.Path += " and " + strconv.Itoa(rest) + " more"
		last.ValueInHub, last.ValueInMember = "(omitted)", "(omitted)"
	}
	return out
}

// by returns the names of actors, for a log line or message.
func by(actors []api.Actor) string {
	if len(actors) == 0 {
		return "unknown"
	}
	var names []string
	for _, a := range actors {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}

// pathsOf returns the paths of differences for a log line, without values.
func pathsOf(list []api.Difference) string {
	var paths []string
	for _, d := range list {
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, " ")
}
