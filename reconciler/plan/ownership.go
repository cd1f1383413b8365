package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// If two placements select an object on the same cluster, one owns it and the other leaves it out. The owner keeps it.
// When the owner gives it up, the other one gets it in the same plan, so that members hand it over instead of deleting
// it. If the rollout of the other one has not reached the cluster yet, it gets the object early.

// A resolver decides which placement owns the objects that several select.
type resolver struct {
	planner *planner
	// shared are the objects to decide on, and sharedIn those of each content, by its first manifest.
	shared   map[api.ID]bool
	sharedIn map[**work.Manifest]map[api.ID]*work.Manifest
	// conflicts are those that were found, on all clusters.
	conflicts map[conflict]*conflictExtent
}

// assignOwners decides the ownership of the shared objects of one cluster, one by one.
func (r *resolver) assignOwners(claims []*claim) {
	ids := map[api.ID]bool{}
	for _, cl := range claims {
		cl.guessHeld(claims)
		for _, of := range []map[api.ID]*work.Manifest{cl.assigned, cl.upcoming, cl.early, cl.held, cl.leftover} {
			for id := range of {
				ids[id] = true
			}
		}
		for _, id := range cl.on.Unusual().Deviation.Early {
			ids[id] = true
		}
		for _, y := range cl.on.Unusual().Deviation.Yields {
			if cl.keepsYield(y.ID) {
				ids[y.ID] = true
			}
		}
		if cl.contentUnknown {
			cl.outcome.Early = cl.on.Unusual().Deviation.Early
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
		handOver(claims, id)
		owner := r.owner(claims, id, func(cl *claim) bool { return cl.asks(id) })
		for _, cl := range claims {
			if owner != nil && cl != owner {
				r.yield(cl, id, owner)
			}
		}
		if owner != nil && owner.early[id] != nil {
			owner.outcome.Early = append(owner.outcome.Early, id)
		}
		if owner == nil {
			keepDropped(claims, id)
		}
		r.recordConflicts(claims, owner, id)
	}
}

// keepOwners does not change the ownership of any object on a cluster.
func (r *resolver) keepOwners(claims []*claim) {
	for _, cl := range claims {
		cl.outcome = cl.on.Unusual().Deviation
		for _, y := range cl.outcome.Yields {
			if m := cl.assigned[y.ID]; m != nil {
				cl.yielded = append(cl.yielded, r.yieldedObject(m, y))
			}
			if !y.Passing {
				r.recordConflict(y.To, cl, y.ID)
			}
		}
	}
}

// handOver assigns an object that its owner gives up, and nobody else holds, to the first placement that has it in its
// upcoming content.
func handOver(claims []*claim, id api.ID) {
	if slices.ContainsFunc(claims, func(cl *claim) bool { return cl.asks(id) && !cl.reportOnly }) ||
		!slices.ContainsFunc(claims, func(cl *claim) bool { return cl.gaveUp(id) }) {
		return
	}
	for _, cl := range claims {
		if m := cl.upcoming[id]; m != nil && !cl.reportOnly {
			cl.early[id] = m
			return
		}
	}
}

// keepDropped keeps an object that was assigned early and that nobody wants any more with the placement that has it, until
// the rollout of that placement reaches the cluster: another placement may come to want the object until then.
func keepDropped(claims []*claim, id api.ID) {
	for _, cl := range claims {
		b := cl.on.Binding
		if !cl.contentUnknown && !b.HasRevision() && !b.Unscheduled && !b.Removing && slices.Contains(cl.on.Unusual().Deviation.Early, id) {
			cl.outcome.Early = append(cl.outcome.Early, id)
		}
	}
}

// owner returns the owner of an object among the claims that qualify; nil if none does.
func (r *resolver) owner(claims []*claim, id api.ID, may func(*claim) bool) *claim {
	var first *claim
	for _, cl := range claims {
		if may(cl) && (first == nil || r.before(cl, first, id)) {
			first = cl
		}
	}
	return first
}

// The ranks of claims to an object, the best first.
const (
	holder         = iota // and its work has the object
	possibleHolder        // its content is not known
	newcomer
	yielder  // the object was left to another one until now
	reporter // never writes
)

func (cl *claim) rank(id api.ID) int {
	switch {
	case cl.reportOnly:
		return reporter
	case cl.assigned[id] == nil && cl.early[id] == nil && cl.maybeHeld[id]:
		return possibleHolder
	case cl.yields(id):
		return yielder
	case !cl.reassigned() || cl.held[id] != nil && !cl.wasRemoving() || slices.Contains(cl.on.Unusual().Deviation.Early, id):
		return holder
	}
	return newcomer
}

// before reports whether one claim to an object outranks another: the current holder first, then the placement that was
// assigned its revision first.
func (r *resolver) before(a, b *claim, id api.ID) bool {
	return cmp.Or(cmp.Compare(a.rank(id), b.rank(id)), r.since(a).Compare(r.since(b)), a.key.Compare(b.key)) < 0
}

func (r *resolver) since(cl *claim) time.Time {
	if cl.on.Entry == nil || !cl.on.Entry.Binding.HasRevision() {
		return r.planner.Now
	}
	return cl.on.Entry.Binding.AssignedAt
}

func (r *resolver) yield(cl *claim, id api.ID, owner *claim) {
	delete(cl.early, id)
	m := cl.assigned[id]
	if m == nil && !cl.on.Binding.HasRevision() {
		m = cl.upcoming[id]
	}
	y := ledger.Yield{ID: id, To: owner.key, Passing: !owner.wants(id)}
	if m != nil {
		cl.yielded = append(cl.yielded, r.yieldedObject(m, y))
	}
	if cl.assigned[id] != nil || cl.keepsYield(id) {
		cl.outcome.Yields = append(cl.outcome.Yields, y)
	}
}

// yieldedObject returns an object left to another placement, for the report.
func (r *resolver) yieldedObject(m *work.Manifest, y ledger.Yield) Yielded {
	out := Yielded{Manifest: m, To: y.To, Passing: y.Passing}
	if spec := r.planner.memo.spec(y.To); spec != nil {
		out.Origin = spec.Origin
	}
	return out
}

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

// A conflict exists if two placements of the commit in force select the same objects: one owns them, and the other one
// does not get them.
type conflict struct{ owner, without api.PlacementKey }

// A conflictExtent lists the objects that are in conflict, and the clusters on which they are.
type conflictExtent struct {
	ids      map[api.ID]bool
	clusters map[string]bool
}

// String returns, for example, "Namespace web and 2 more objects on east and 1 more cluster".
func (e *conflictExtent) String() string {
	// Cluster-scoped objects come first, since a Namespace is the most informative.
	ids := slices.SortedFunc(maps.Keys(e.ids), func(a, b api.ID) int {
		return cmp.Or(cmp.Compare(min(len(a.Namespace), 1), min(len(b.Namespace), 1)), a.Compare(b))
	})
	return ids[0].String() + more(len(ids), "object") + " on " + slices.Min(slices.Collect(maps.Keys(e.clusters))) + more(len(e.clusters), "cluster")
}

func more(n int, what string) string {
	switch n {
	case 1:
		return ""
	case 2:
		return " and 1 more " + what
	}
	return fmt.Sprintf(" and %d more %ss", n-1, what)
}

// recordConflicts records the conflicts about an object on a cluster: more than one placement has it in its latest
// content. While rollouts move an object from one placement to another, there is no conflict.
func (r *resolver) recordConflicts(claims []*claim, owner *claim, id api.ID) {
	wanting := func(cl *claim) bool { return cl.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = r.owner(claims, id, wanting)
	}
	for _, cl := range claims {
		if cl != owner && wanting(cl) {
			r.recordConflict(owner.key, cl, id)
		}
	}
}

// recordConflict records that an object is left to its owner.
func (r *resolver) recordConflict(owner api.PlacementKey, without *claim, id api.ID) {
	c := conflict{owner, without.key}
	if r.conflicts[c] == nil {
		r.conflicts[c] = &conflictExtent{map[api.ID]bool{}, map[string]bool{}}
	}
	r.conflicts[c].ids[id], r.conflicts[c].clusters[without.on.Binding.Cluster] = true, true
}
