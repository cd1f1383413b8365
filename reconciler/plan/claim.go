package plan

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan/ownership"
)

// A claim is that of a placement to the shared objects on a cluster.
type claim struct {
	ownership.Claim
	claimant *Placement
	on       *OnCluster
}

// sharedObjects finds the objects that several placements select.
type sharedObjects struct {
	ids map[api.ID]bool
	// in are those of each content, by its first manifest, since most clusters have the same contents.
	in map[**work.Manifest]map[api.ID]*work.Manifest
}

// claim returns the claim of a placement on a cluster. prepared is the latest content of the placement; nil if it is
// not in the commit in force.
func (shared sharedObjects) claim(p *Placement, prepared *prepared, c *OnCluster, now time.Time) *claim {
	cl := &claim{claimant: p, on: c, Claim: ownership.Claim{
		Claimant: p.Key, Since: now, Before: c.Unusual().Deviation, Early: map[api.ID]*work.Manifest{}, ReportOnly: p.Spec != nil && p.Spec.Spec.Strategy.ReportsDiff(),
		HasRevision: c.Binding.HasRevision(), Reassigned: true, Unscheduled: c.Binding.Unscheduled, Removing: c.Binding.Removing,
	}}
	if c.Entry != nil {
		before := c.Entry.Binding
		cl.WasRemoving, cl.Reassigned = before.Removing, before.Removing || before.Assigned != c.Binding.Assigned
		if before.HasRevision() {
			cl.Since = before.AssignedAt
		}
	}
	w := c.work
	if w != nil {
		cl.Assigned = shared.of(w.Manifests)
		cl.RemovesUnknown = w.Remove && c.PreviousContent == nil
	}
	if c.PreviousContent != nil && (w == nil || w.Remove || cl.Reassigned) {
		cl.Previous = shared.of(c.PreviousContent.Manifests)
	}
	if left := c.Unusual().leftover; left != nil && c.Binding.Unusual().Leftover == nil {
		cl.Leftover = shared.of(left.Manifests)
	}
	if selected(c) {
		shared.addUpcoming(cl)
	}
	if w != nil && w.Keep && len(w.Manifests) == 0 && !w.Unreleased() {
		cl.MaybeOwned = map[api.ID]bool{}
		if prepared != nil && prepared.renderer != nil {
			for id := range shared.of(prepared.renderer.Manifests()) {
				cl.MaybeOwned[id] = !ownership.Yields(cl.Before, id)
			}
		}
	}
	return cl
}

func (shared sharedObjects) addUpcoming(cl *claim) {
	c := cl.on
	switch {
	case c.Err != nil || c.Content.Hash == "":
		cl.ContentUnknown = true
	case !c.UpToDate() || !c.Binding.HasRevision():
		cl.Upcoming = shared.of(c.Content.Manifests)
		for _, id := range cl.Before.Early {
			if m := cl.Upcoming[id]; m != nil && cl.Assigned[id] == nil {
				cl.Early[id] = m
			}
		}
	}
}

// of returns the shared objects of a content.
func (shared sharedObjects) of(content []*work.Manifest) map[api.ID]*work.Manifest {
	if len(content) == 0 {
		return nil
	}
	out, known := shared.in[&content[0]]
	if !known {
		out = map[api.ID]*work.Manifest{}
		for _, m := range content {
			if shared.ids[m.ID] {
				out[m.ID] = m
			}
		}
		shared.in[&content[0]] = out
	}
	return out
}

// finalWork returns the work of the cluster with objects left out and added.
func (cl *claim) finalWork(paused bool) *work.Work {
	p := cl.claimant
	// As long as no revision is assigned, all of its objects were assigned early.
	w := newWork(p, cl.on)
	w.Keep = paused
	if cl.on.work != nil {
		w = *cl.on.work
	}
	w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool { return ownership.Yields(cl.Outcome, m.ID) })
	if len(cl.Outcome.Yields) > 0 && p.Spec != nil && !w.Remove && !cl.ReportOnly && !cl.ContentUnknown && cl.MaybeOwned == nil {
		w.Awaited = cl.on.Content.Manifests // objects left to another placement are not given up
	}
	if len(cl.Outcome.Early) > 0 {
		dropped := false
		for _, id := range cl.Outcome.Early {
			if m := cl.Early[id]; m != nil {
				w.Manifests = append(w.Manifests, m)
			} else {
				dropped = true
			}
		}
		w.Manifests = work.Sorted(w.Manifests)
		w.Keep = dropped || paused || w.Keep && cl.on.Binding.HasRevision()
	}
	return &w
}
