package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A claim says which of the shared objects a placement wants on a cluster.
type claim struct {
	key      api.PlacementKey
	claimant *Placement
	on       *OnCluster
	// assigned are the objects of the assigned revision. upcoming are those of the latest revision, if the rollout has
	// not reached the cluster. held are those that the placement held until now, if they differ.
	assigned, upcoming, held map[api.ID]*work.Manifest
	// leftover are the objects of the leftover revision, which the placement gives up.
	leftover map[api.ID]*work.Manifest
	// maybeHeld are the objects that the placement may hold if its work keeps everything without listing it, mostly because
	// the content of its revision is not known; nil otherwise. maybeRemoved are those that it may have held before.
	maybeHeld, maybeRemoved map[api.ID]bool
	// early are upcoming objects that are assigned already now.
	early map[api.ID]*work.Manifest
	// contentUnknown says that the latest content is not known, so that objects that were assigned early are kept.
	contentUnknown bool
	// reportOnly says that the placement only reports differences and owns nothing.
	reportOnly bool

	// outcome and yielded are the result of the resolution.
	outcome ledger.Deviation
	yielded []Yielded
}

// claim returns the claim of a placement on a cluster. prepared is the latest content of the placement; nil if it is
// not in the commit in force.
func (r *resolver) claim(p *Placement, prepared *prepared, c *OnCluster) *claim {
	cl := &claim{key: p.Key, claimant: p, on: c, early: map[api.ID]*work.Manifest{}, reportOnly: p.Spec != nil && p.Spec.Spec.Strategy.ReportsDiff()}
	w := c.work
	if w != nil {
		cl.assigned = r.sharedObjects(w.Manifests)
	}
	if c.PreviousContent != nil && (w == nil || w.Remove || cl.reassigned()) {
		cl.held = r.sharedObjects(c.PreviousContent.Manifests)
	}
	if left := c.Unusual().leftover; left != nil && c.Binding.Unusual().Leftover == nil {
		cl.leftover = r.sharedObjects(left.Manifests)
	}
	if !c.Binding.Unscheduled && !c.Binding.Removing {
		r.addUpcoming(cl)
	}
	if w != nil && w.Keep && len(w.Manifests) == 0 && !w.Unreleased() {
		cl.maybeHeld = map[api.ID]bool{}
		if prepared != nil && prepared.renderer != nil {
			for id := range r.sharedObjects(prepared.renderer.Manifests()) {
				cl.maybeHeld[id] = !cl.yields(id)
			}
		}
	}
	return cl
}

func (r *resolver) addUpcoming(cl *claim) {
	c := cl.on
	switch {
	case c.Err != nil || c.Content.Hash == "":
		cl.contentUnknown = true
	case !c.UpToDate() || !c.Binding.HasRevision():
		cl.upcoming = r.sharedObjects(c.Content.Manifests)
		for _, id := range c.Unusual().Deviation.Early {
			if m := cl.upcoming[id]; m != nil && cl.assigned[id] == nil {
				cl.early[id] = m
			}
		}
	}
}

// guessHeld adds the objects that others yield to the placement to those that it may hold, if its content is not known.
// If the placement is being removed, they may have been removed.
func (cl *claim) guessHeld(others []*claim) {
	removed := cl.on.work != nil && cl.on.work.Remove && cl.on.PreviousContent == nil
	if cl.maybeHeld == nil && !removed {
		return
	}
	guess := cl.maybeHeld
	if removed {
		guess = map[api.ID]bool{}
		cl.maybeRemoved = guess
	}
	for _, o := range others {
		for _, y := range o.on.Unusual().Deviation.Yields {
			if y.To == cl.key {
				guess[y.ID] = true
			}
		}
	}
}

// sharedObjects returns the shared objects in a content. Most clusters have the same contents.
func (r *resolver) sharedObjects(ms []*work.Manifest) map[api.ID]*work.Manifest {
	if len(ms) == 0 {
		return nil
	}
	out, known := r.sharedIn[&ms[0]]
	if !known {
		out = map[api.ID]*work.Manifest{}
		for _, m := range ms {
			if r.shared[m.ID] {
				out[m.ID] = m
			}
		}
		r.sharedIn[&ms[0]] = out
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
func (cl *claim) yields(id api.ID) bool { return yields(cl.on.Unusual().Deviation, id) }

// yields reports whether claims leave an object to another placement. Yields are sorted by ID.
func yields(c ledger.Deviation, id api.ID) bool {
	_, found := slices.BinarySearchFunc(c.Yields, id, func(y ledger.Yield, id api.ID) int { return y.ID.Compare(id) })
	return found
}

// keepsYield reports whether an object stays left to another placement, since the work keeps everything as it is.
func (cl *claim) keepsYield(id api.ID) bool { return cl.maybeHeld != nil && cl.yields(id) }

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
	had := cl.held[id] != nil && !cl.yields(id) || cl.leftover[id] != nil || cl.maybeRemoved[id] || slices.Contains(cl.on.Unusual().Deviation.Early, id)
	return had && !cl.reportOnly && !cl.asks(id)
}
