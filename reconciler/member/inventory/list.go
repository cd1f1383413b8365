package inventory

import (
	"fmt"
	"iter"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A List has one inventory for each of some placements, sorted by placement. The zero value is empty.
type List []*Inventory

// find returns where the inventory of a placement is, or would be.
func (l List) find(p api.PlacementKey) (at int, found bool) {
	return slices.BinarySearchFunc(l, p, func(inv *Inventory, p api.PlacementKey) int { return inv.Placement().Compare(p) })
}

// Of returns the inventory of a placement; nil if there is none.
func (l List) Of(p api.PlacementKey) *Inventory {
	if at, found := l.find(p); found {
		return l[at]
	}
	return nil
}

// Put adds an inventory, or replaces the one of its placement.
func (l *List) Put(inv *Inventory) {
	if at, found := l.find(inv.Placement()); found {
		(*l)[at] = inv
	} else {
		*l = slices.Insert(*l, at, inv)
	}
}

// Drop removes the inventory of a placement, if there is one.
func (l *List) Drop(p api.PlacementKey) {
	if at, found := l.find(p); found {
		*l = slices.Delete(*l, at, at+1)
	}
}

// WithoutRoom returns those of some placements that may not get an inventory beside those that a cluster has, and why: more than
// connection.MaxPlacements would not be read again.
func WithoutRoom(has List, some iter.Seq[api.PlacementKey]) map[api.PlacementKey]error {
	var added []api.PlacementKey
	for p := range some {
		if has.Of(p) == nil {
			added = append(added, p)
		}
	}
	room := max(0, connection.MaxPlacements-len(has))
	if len(added) <= room {
		return nil
	}
	slices.SortFunc(added, api.PlacementKey.Compare)
	refused := map[api.PlacementKey]error{}
	for _, p := range added[room:] {
		refused[p] = fmt.Errorf("a cluster can have objects of at most %d placements, and this one has objects of %d others", connection.MaxPlacements, len(has)+room)
	}
	return refused
}
