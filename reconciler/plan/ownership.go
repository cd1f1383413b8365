package plan

import (
	"cmp"
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
