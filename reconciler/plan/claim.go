package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A claimant is a placement on a cluster on which it selects shared objects. It has everything
// that its claim is computed from.
type claimant struct {
	key    api.PlacementKey
	result *result
	on     *OnCluster
	work   *work.Work // the planned work; nil if there is none
}

// same reports whether nothing that affects the resolution has changed.
func (p *claimant) same(o *claimant) bool {
	a, b := p.on, o.on
	if p.key != o.key || p.result.placement.Spec != o.result.placement.Spec || p.result.prepared != o.result.prepared || (p.work == nil) != (o.work == nil) || p.work != nil && !sameWork(p.work, o.work) {
		return false
	}
	return a == b || sameBinding(a.Binding, b.Binding) && sameEntry(a.Entry, b.Entry) && sameContents(a.heldContent, b.heldContent) &&
		(a.Err == nil) == (b.Err == nil) && sameContents(&a.Content, &b.Content) &&
		a.Claims.Equal(b.Claims)
}

func sameEntry(a, b *ledger.Entry) bool {
	return a == b || a != nil && b != nil && sameBinding(a.Binding, b.Binding)
}

func sameContents(a, b *work.Rendered) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && ledger.Identical(a.Manifests, b.Manifests)
}

// A claim says which of the shared objects a claimant wants.
type claim struct {
	claimant
	// assigned are the objects of the assigned revision. upcoming are those of the latest
	// revision, if the rollout has not reached the cluster. held are those that the placement
	// held until now, if they differ.
	assigned, upcoming, held map[api.ID]*work.Manifest
	// maybeHeld are the objects that the placement may hold if the content of its revision is
	// not known. maybeRemoved are those that it may have held before.
	maybeHeld, maybeRemoved map[api.ID]bool
	// early are upcoming objects that are assigned already now.
	early map[api.ID]*work.Manifest
	// yieldedBefore are the objects that were left to others until now.
	yieldedBefore map[api.ID]bool
	// contentUnknown says that the latest content is not known, so that objects that were
	// assigned early are kept.
	contentUnknown bool
	// reportOnly says that the placement only reports differences and owns nothing.
	reportOnly bool

	outcome ledger.Claims
	yielded []Yielded
	// resolved is the claimant's cluster after the resolution.
	resolved *OnCluster
}

// replaceClaimant replaces the claimant of an earlier call by the equal one of this call.
func (cl *claim) replaceClaimant(p claimant) {
	if cl.on != p.on {
		cl.resolved = nil
	}
	cl.claimant = p
}

// claimantsByCluster lists the claimants of each cluster, by placement.
func (pl *planner) claimantsByCluster(keys []api.PlacementKey) map[string][]claimant {
	out := make(map[string][]claimant, len(pl.Head.Clusters))
	for _, key := range keys {
		r := pl.results[key]
		works := r.works
		for _, c := range r.placement.Clusters {
			name := c.Binding.Cluster
			p := claimant{key: key, result: r, on: c}
			for len(works) > 0 && works[0].cluster < name {
				works = works[1:]
			}
			if len(works) > 0 && works[0].cluster == name {
				p.work = &works[0].work
			}
			out[name] = append(out[name], p)
		}
	}
	return out
}

// claims returns the claims of the claimants of one cluster.
func (r *resolver) claims(claimants []claimant) []*claim {
	out := make([]*claim, len(claimants))
	for i, p := range claimants {
		out[i] = r.claim(p)
	}
	for _, cl := range out {
		cl.guessHeld(out)
	}
	return out
}

func (r *resolver) claim(p claimant) *claim {
	c, w := p.on, p.work
	cl := &claim{claimant: p, early: map[api.ID]*work.Manifest{}, yieldedBefore: make(map[api.ID]bool, len(c.Claims.Yields))}
	for _, y := range c.Claims.Yields {
		cl.yieldedBefore[y.ID] = true
	}
	cl.reportOnly = p.result.placement.Spec != nil && p.result.placement.Spec.Spec.Strategy.ReportsDiff()
	if w != nil {
		cl.assigned = r.sharedObjects(w.Manifests)
	}
	if c.heldContent != nil && (w == nil || w.Remove || cl.reassigned()) {
		cl.held = r.sharedObjects(c.heldContent.Manifests)
	}
	if !c.Binding.Unscheduled && !c.Binding.Removing {
		r.addUpcoming(cl)
	}
	if w != nil && w.Keep && len(w.Manifests) == 0 && !w.Unreleased() {
		cl.maybeHeld = map[api.ID]bool{}
		if now := p.result.prepared; now != nil && now.renderer != nil {
			for id := range r.sharedObjects(now.renderer.Manifests()) {
				cl.maybeHeld[id] = !cl.yields(id)
			}
		}
	}
	return cl
}

// addUpcoming adds the objects of the latest revision.
func (r *resolver) addUpcoming(cl *claim) {
	c := cl.on
	switch {
	case c.Err != nil || c.Content.Hash == "":
		cl.contentUnknown = true
	case !c.UpToDate() || !c.Binding.Released():
		cl.upcoming = r.sharedObjects(c.Content.Manifests)
		for _, id := range c.Claims.Early {
			if m := cl.upcoming[id]; m != nil && cl.assigned[id] == nil {
				cl.early[id] = m
			}
		}
	}
}

// guessHeld adds the objects that others yield to the placement to those that it may hold, if
// its content is not known. If the placement is being removed, they may have been removed.
func (cl *claim) guessHeld(others []*claim) {
	goes := cl.work != nil && cl.work.Remove && cl.on.heldContent == nil
	if cl.maybeHeld == nil && !goes {
		return
	}
	guess := cl.maybeHeld
	if goes {
		guess = map[api.ID]bool{}
		cl.maybeRemoved = guess
	}
	for _, o := range others {
		for _, y := range o.on.Claims.Yields {
			if y.To == cl.key {
				guess[y.ID] = true
			}
		}
	}
}

// sharedObjects returns the shared objects in a content.
func (r *resolver) sharedObjects(ms []*work.Manifest) map[api.ID]*work.Manifest {
	if len(ms) == 0 {
		return nil
	}
	out, known := r.shared[&ms[0]]
	if !known {
		out = r.memo.overlaps.sharedObjects(ms)
		r.shared[&ms[0]] = out
	}
	return out
}

// reassigned reports whether this plan assigns another revision to the cluster.
func (cl *claim) reassigned() bool {
	return cl.wasRemoving() || cl.on.Entry == nil || cl.on.Entry.Binding.Assigned != cl.on.Binding.Assigned
}

// wasRemoving reports whether the placement was being removed from the cluster until now.
func (cl *claim) wasRemoving() bool { return cl.on.Entry != nil && cl.on.Entry.Binding.Removing }

// yields reports whether an object was left to another placement until now.
func (cl *claim) yields(id api.ID) bool { return cl.yieldedBefore[id] }

// asks reports whether the placement wants the object now.
func (cl *claim) asks(id api.ID) bool {
	return cl.assigned[id] != nil || cl.early[id] != nil || cl.maybeHeld[id]
}

// wants reports whether the object is in the latest content.
func (cl *claim) wants(id api.ID) bool {
	if cl.upcoming != nil {
		return cl.upcoming[id] != nil || cl.early[id] != nil
	}
	return !cl.on.Binding.Unscheduled && cl.asks(id)
}

// gaveUp reports whether the placement had the object until now and no longer wants it.
func (cl *claim) gaveUp(id api.ID) bool {
	had := cl.held[id] != nil && !cl.yields(id) || cl.maybeRemoved[id] || slices.Contains(cl.on.Claims.Early, id)
	return had && !cl.reportOnly && !cl.asks(id)
}
