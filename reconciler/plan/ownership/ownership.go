// Package ownership decides which placement owns an object that several of them select on the same cluster.
//
// The owner keeps it, and the others leave it out. When the owner gives it up, another one gets it in the same plan, so that
// members hand it over instead of deleting it. If the rollout of the other one has not reached the cluster yet, it gets the
// object early.
package ownership

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Conflict exists if two placements of the commit in force select the same object: one owns it, and the other one does
// not get it.
type Conflict struct {
	Owner, Without api.PlacementKey
	ID             api.ID
}

// Assign decides the ownership of the objects of one cluster, one by one. It sets the results of the claims, and returns the
// conflicts between them.
func Assign(claims []*Claim) (conflicts []Conflict) {
	ids := map[api.ID]bool{}
	for _, c := range claims {
		c.guessOwned(claims)
		for _, of := range []map[api.ID]*work.Manifest{c.Assigned, c.Upcoming, c.Early, c.Previous, c.Leftover} {
			for id := range of {
				ids[id] = true
			}
		}
		for _, id := range c.Before.Early {
			ids[id] = true
		}
		for _, y := range c.Before.Yields {
			if c.keepsYield(y.ID) {
				ids[y.ID] = true
			}
		}
		if c.ContentUnknown {
			c.Outcome.Early = c.Before.Early
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(ids), api.ID.Compare) {
		handOver(claims, id)
		owner := first(claims, id, func(c *Claim) bool { return c.asks(id) })
		for _, c := range claims {
			if owner != nil && c != owner {
				c.yield(id, owner)
			}
		}
		if owner != nil && owner.Early[id] != nil {
			owner.Outcome.Early = append(owner.Outcome.Early, id)
		}
		if owner == nil {
			keepDropped(claims, id)
		}
		conflicts = append(conflicts, conflictsAbout(id, claims, owner)...)
	}
	return conflicts
}

// Keep changes the ownership of no object on a cluster. It sets the results of the claims, and returns the conflicts that
// remain.
func Keep(claims []*Claim) (conflicts []Conflict) {
	for _, c := range claims {
		c.Outcome = c.Before
		for _, y := range c.Outcome.Yields {
			if m := c.Assigned[y.ID]; m != nil {
				c.Yielded = append(c.Yielded, Yielded{y, m})
			}
			if !y.Passing {
				conflicts = append(conflicts, Conflict{Owner: y.To, Without: c.Claimant, ID: y.ID})
			}
		}
	}
	return conflicts
}

// handOver assigns an object that its owner gives up, and nobody else holds, to the first placement that has it in its
// upcoming content.
func handOver(claims []*Claim, id api.ID) {
	if slices.ContainsFunc(claims, func(c *Claim) bool { return c.asks(id) && !c.ReportOnly }) ||
		!slices.ContainsFunc(claims, func(c *Claim) bool { return c.gaveUp(id) }) {
		return
	}
	for _, c := range claims {
		if m := c.Upcoming[id]; m != nil && !c.ReportOnly {
			c.Early[id] = m
			return
		}
	}
}

// first returns the claim to an object that outranks all others that qualify; nil if none does.
func first(claims []*Claim, id api.ID, qualifies func(*Claim) bool) *Claim {
	var first *Claim
	for _, c := range claims {
		if qualifies(c) && (first == nil || c.before(first, id)) {
			first = c
		}
	}
	return first
}

// yield leaves an object to its owner.
func (c *Claim) yield(id api.ID, owner *Claim) {
	delete(c.Early, id)
	m := c.Assigned[id]
	if m == nil && !c.HasRevision {
		m = c.Upcoming[id]
	}
	y := ledger.Yield{ID: id, To: owner.Claimant, Passing: !owner.wants(id)}
	if m != nil {
		c.Yielded = append(c.Yielded, Yielded{y, m})
	}
	if c.Assigned[id] != nil || c.keepsYield(id) {
		c.Outcome.Yields = append(c.Outcome.Yields, y)
	}
}

// keepDropped keeps an object that was assigned early and that nobody wants any more with the placement that has it, until
// the rollout of that placement reaches the cluster: another placement may come to want the object until then.
func keepDropped(claims []*Claim, id api.ID) {
	for _, c := range claims {
		if !c.ContentUnknown && !c.HasRevision && !c.Unscheduled && !c.Removing && slices.Contains(c.Before.Early, id) {
			c.Outcome.Early = append(c.Outcome.Early, id)
		}
	}
}

// conflictsAbout returns the conflicts about an object: more than one placement has it in its latest content. While rollouts
// move an object from one placement to another, there is no conflict.
func conflictsAbout(id api.ID, claims []*Claim, owner *Claim) (conflicts []Conflict) {
	wanting := func(c *Claim) bool { return c.wants(id) }
	if owner == nil || !owner.wants(id) {
		owner = first(claims, id, wanting)
	}
	for _, c := range claims {
		if c != owner && wanting(c) {
			conflicts = append(conflicts, Conflict{Owner: owner.Claimant, Without: c.Claimant, ID: id})
		}
	}
	return conflicts
}
