package ownership

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A Claim says which objects that several placements select one of them wants on a cluster, and has there. Other objects are in none
// of its fields.
type Claim struct {
	Claimant api.PlacementKey
	// Since is when the placement was assigned the revision that the cluster had until now.
	Since time.Time
	// Before is the outcome until now.
	Before ledger.Deviation
	// Assigned are the objects of the assigned revision. Upcoming are those of the latest revision, if the rollout has
	// not reached the cluster. Previous are those that it had until now, if they differ.
	Assigned, Upcoming, Previous map[api.ID]*work.Manifest
	// Leftover are the objects of the leftover revision, which the placement gives up.
	Leftover map[api.ID]*work.Manifest
	// MaybeOwned are the objects that the placement may own if its work keeps everything without listing it, mostly because
	// the content of its revision is not known; nil otherwise.
	MaybeOwned map[api.ID]bool
	// maybeRemoved are those that it may have owned before.
	maybeRemoved map[api.ID]bool
	// Early are upcoming objects that are assigned already now.
	Early map[api.ID]*work.Manifest
	// ContentUnknown says that the latest content is not known, so that objects that were assigned early are kept.
	ContentUnknown bool
	// ReportOnly says that the placement only reports differences and owns nothing.
	ReportOnly bool
	// HasRevision says that a revision is assigned, and Reassigned that the plan has assigned another one than before.
	HasRevision, Reassigned bool
	// Unscheduled and Removing are those of the binding, and WasRemoving is what Removing was before.
	Unscheduled, Removing, WasRemoving bool
	// RemovesUnknown says that the work removes everything of the placement, and that it is not known what that is.
	RemovesUnknown bool

	// Outcome and Yielded are the result of the resolution. Yielded has no objects that are in no known content.
	Outcome ledger.Deviation
	Yielded []Yielded
}

// Yielded is an object that is left to another placement.
type Yielded struct {
	ledger.Yield
	Object *work.Manifest
}

// guessOwned adds the objects that others yield to the placement to those that it may own, if its content is not known.
// If the placement is being removed, they may have been removed.
func (c *Claim) guessOwned(others []*Claim) {
	if c.MaybeOwned == nil && !c.RemovesUnknown {
		return
	}
	guess := c.MaybeOwned
	if c.RemovesUnknown {
		guess = map[api.ID]bool{}
		c.maybeRemoved = guess
	}
	for _, o := range others {
		for _, y := range o.Before.Yields {
			if y.To == c.Claimant {
				guess[y.ID] = true
			}
		}
	}
}

// The ranks of claims to an object, the best first.
const (
	holder         = iota // and its work has the object
	possibleHolder        // its content is not known
	newcomer
	yielder  // the object was left to another one until now
	reporter // never writes
)

func (c *Claim) rank(id api.ID) int {
	switch {
	case c.ReportOnly:
		return reporter
	case c.Assigned[id] == nil && c.Early[id] == nil && c.MaybeOwned[id]:
		return possibleHolder
	case Yields(c.Before, id):
		return yielder
	case !c.Reassigned || c.Previous[id] != nil && !c.WasRemoving || slices.Contains(c.Before.Early, id):
		return holder
	}
	return newcomer
}

// before reports whether one claim to an object outranks another: the current holder first, then the placement that was
// assigned its revision first.
func (c *Claim) before(o *Claim, id api.ID) bool {
	return cmp.Or(cmp.Compare(c.rank(id), o.rank(id)), c.Since.Compare(o.Since), c.Claimant.Compare(o.Claimant)) < 0
}

// Yields reports whether an outcome leaves an object to another placement. Yields are sorted by ID.
func Yields(d ledger.Deviation, id api.ID) bool {
	_, found := slices.BinarySearchFunc(d.Yields, id, func(y ledger.Yield, id api.ID) int { return y.ID.Compare(id) })
	return found
}

// keepsYield reports whether an object stays left to another placement, since the work keeps everything as it is.
func (c *Claim) keepsYield(id api.ID) bool { return c.MaybeOwned != nil && Yields(c.Before, id) }

// asks reports whether the placement wants the object now.
func (c *Claim) asks(id api.ID) bool {
	return c.Assigned[id] != nil || c.Early[id] != nil || c.MaybeOwned[id]
}

// wants reports whether the object is in the latest content.
func (c *Claim) wants(id api.ID) bool {
	if c.Upcoming != nil {
		return c.Upcoming[id] != nil || c.Early[id] != nil
	}
	return !c.Unscheduled && c.asks(id)
}

// gaveUp reports whether the placement had the object until now and no longer wants it.
func (c *Claim) gaveUp(id api.ID) bool {
	had := c.Previous[id] != nil && !Yields(c.Before, id) || c.Leftover[id] != nil || c.maybeRemoved[id] || slices.Contains(c.Before.Early, id)
	return had && !c.ReportOnly && !c.asks(id)
}
