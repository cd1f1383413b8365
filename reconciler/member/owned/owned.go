// Package owned is what placements own on a member cluster: the objects that their inventories list, and what becomes of those that
// they no longer want.
//
// A State has the inventories as they are, or are to be, on the cluster. Each of its methods records one thing that has happened to an
// object or an inventory. The part of a session that writes inventories to the cluster has the only State; the others have a View, and
// nothing that they read from it can be changed.
package owned

import (
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A State is what placements own, for the one who records that. New returns an empty one.
type State struct {
	desired     desired.View
	inventories inventory.List
	// newOwners are the placements that are to have objects.
	newOwners map[api.ID]api.PlacementKey
	// scalers are the placed autoscalers by the object that they scale, and leaving those that are to be deleted; nil until a
	// pass needs them.
	scalers map[api.ID]api.ID
	leaving map[api.ID]bool
}

// New returns the state of a cluster whose inventories were not read yet.
func New(v desired.View) *State { return &State{desired: v} }

// View returns a view of the state, which follows its changes.
func (s *State) View() View { return View{s} }

// Inventories returns all inventories, for the one who writes them to the cluster.
func (s *State) Inventories() inventory.List { return s.inventories }

// Inventory returns the inventory of a placement, for the one who writes it to the cluster. It is empty if it is new.
func (s *State) Inventory(p api.PlacementKey) *inventory.Inventory {
	inv := s.inventories.Of(p)
	if inv == nil {
		inv = inventory.New(p, placement.Revision{})
		s.inventories.Put(inv)
	}
	return inv
}

// Loaded records that the inventories were read, and replaces all that were known.
func (s *State) Loaded(all inventory.List) {
	s.inventories = all
	s.newOwners = s.View().findNewOwners()
}

// ReplaceWorks replaces what placements should have, of which this state has a view. An object of two works stays with the placement
// that owns it.
func (s *State) ReplaceWorks(in *desired.State, works []*work.Work) {
	in.Replace(works, s.View().keeps)
	s.newOwners, s.scalers, s.leaving = s.View().findNewOwners(), nil, nil
}

// InventoryDeleted records that the inventory of a placement was deleted.
func (s *State) InventoryDeleted(p api.PlacementKey) { s.inventories.Drop(p) }

// Release records that all objects are to stay on the cluster when they are given up. It returns the works by which they are given up.
func (s *State) Release() (works []*work.Work) {
	for _, inv := range s.inventories {
		inv.Abandon = true
		works = append(works, &work.Work{Placement: inv.Placement(), Remove: true, Abandon: true})
	}
	return works
}

// Found records that an object that no inventory lists is one of a placement.
func (s *State) Found(p api.PlacementKey, it inventory.Item) {
	inv := s.Inventory(p)
	inv.Items.Put(it)
	inv.Invalidate()
}

// put records an object in the inventory of a placement, which has one.
func (s *State) put(p api.PlacementKey, it inventory.Item) { s.inventories.Of(p).Items.Put(it) }

// Applied records that the object of a task was written, in the item of the task too, and reports whether its inventory has to be
// written.
func (s *State) Applied(o *apply.Outcome) (changed bool) {
	it, l := o.Item, o.Written
	changed = it.Hash != o.Manifest.Hash || it.Managed != l.Managed || it.OthersState != "" || it.UID != l.UID || it.Version != o.Res.Version
	if it.Hash != o.Manifest.Hash || it.UID != l.UID {
		it.End = ""
	}
	if it.Hash != o.Manifest.Hash {
		it.Commit = s.commitOf(o.Placement)
	}
	it.Version, it.Hash, it.Managed, it.OthersState, it.UID = o.Res.Version, o.Manifest.Hash, l.Managed, "", l.UID
	s.put(o.Placement, *it)
	return changed
}

// FieldsLeft records which fields that Git has removed the object of a task still has, and reports whether that has changed.
func (s *State) FieldsLeft(o *apply.Outcome) (changed bool) {
	if o.Left == nil || o.Item.Left == *o.Left {
		return false
	}
	o.Item.Left = *o.Left
	s.put(o.Placement, *o.Item)
	return true
}

// AlreadyEqual records that the object of a task equals its new version without having been written.
func (s *State) AlreadyEqual(o *apply.Outcome) {
	it := *o.Item
	it.Hash, it.Managed, it.OthersState = o.Manifest.Hash, o.Accepted.Managed, o.Accepted.OthersState()
	it.Version, it.Commit = o.Res.Version, s.commitOf(o.Placement)
	s.put(o.Placement, it)
}

func (s *State) commitOf(p api.PlacementKey) string { return s.desired.Works().Of(p).Revision.Commit }

// Ended records that an object has run to its end: a controller may delete it from now on. It reports whether that is new, and is the
// end of the object that the placement has applied.
func (s *State) Ended(p api.PlacementKey, id api.ID, l *observed.Object) (news bool) {
	it := s.View().Item(p, id)
	if it == nil || it.Hash == "" || it.UID != l.UID || it.End != "" {
		return false
	}
	it.End = inventory.Ended
	if l.Health.Failure != "" {
		it.End = inventory.Failed
	}
	s.put(p, *it)
	return true
}

// ValuesChanged records that others have changed values of an object although its metadata does not show it.
func (s *State) ValuesChanged(p api.PlacementKey, id api.ID) {
	if it := s.View().Item(p, id); it != nil {
		it.Managed = "" // no live object equals that, so that the object counts as drifted
		s.put(p, *it)
	}
}

// Removed records that an object is no longer one of a placement.
func (s *State) Removed(p api.PlacementKey, id api.ID) { s.inventories.Of(p).Items.Drop(id) }

// Unapplied records that an object has yet to be applied, since it is being deleted, and returns its item as it is then.
func (s *State) Unapplied(p api.PlacementKey, it *inventory.Item) inventory.Item {
	next := *it
	next.Hash = ""
	s.put(p, next)
	return next
}

// StillThere records that an object which was to be deleted is as it was.
func (s *State) StillThere(p api.PlacementKey, it *inventory.Item) { s.put(p, *it) }

// A View reads a State, and cannot change it.
type View struct{ state *State }

// Count returns the number of inventories.
func (v View) Count() int { return len(v.state.inventories) }

// All yields the inventories, sorted by placement.
func (v View) All() iter.Seq[inventory.View] {
	return func(yield func(inventory.View) bool) {
		for _, inv := range v.state.inventories {
			if !yield(inv.View()) {
				return
			}
		}
	}
}

// Of returns the inventory of a placement, and whether it has one.
func (v View) Of(p api.PlacementKey) (inv inventory.View, found bool) {
	known := v.state.inventories.Of(p)
	return known.View(), known != nil
}

// Item returns the entry of an object in the inventory of a placement; nil if there is none.
func (v View) Item(p api.PlacementKey, id api.ID) *inventory.Item {
	if inv := v.state.inventories.Of(p); inv != nil {
		return inv.Items.Of(id)
	}
	return nil
}

// IsApplied reports whether an object is recorded as applied with the content that is wanted.
func (v View) IsApplied(w desired.Object) bool {
	inv := v.state.inventories.Of(w.Placement)
	return inv != nil && inv.Items.Applied(w.Manifest.ID, w.Manifest.Hash)
}

// Owns reports whether the inventory of a placement lists an object.
func (v View) Owns(p api.PlacementKey, id api.ID) bool {
	inv := v.state.inventories.Of(p)
	return inv != nil && inv.Items.Has(id)
}

// keeps reports whether new, and not old, gets an object that both placements want: the one
// that owns it keeps it. A plan gives each object of a cluster to one placement, unless the
// ledger was lost and the cluster is paused: then only the inventories know the owner.
func (v View) keeps(old, new desired.Object) bool {
	return v.Owns(new.Placement, new.Manifest.ID) && !v.Owns(old.Placement, old.Manifest.ID)
}

// MayApply reports whether an object may be applied now, as far as the hooks of its chart allow it.
func (v View) MayApply(w desired.Object) (state hooks.State, why string) {
	return v.state.desired.Hooks().For(w.Placement, w.Manifest, func(id api.ID) *inventory.Item { return v.Item(w.Placement, id) })
}

// IsListed reports whether any inventory lists an object.
func (v View) IsListed(id api.ID) bool { return len(v.Listing(id)) > 0 }

// Listing returns the inventories that list an object.
func (v View) Listing(id api.ID) (out []inventory.View) {
	for _, inv := range v.state.inventories {
		if inv.Items.Has(id) {
			out = append(out, inv.View())
		}
	}
	return out
}

// ListingsFor returns Listing for use with many objects, while nothing is added to inventories. If there are many objects and
// placements, it builds an index instead of looking into each inventory for each object.
func (v View) ListingsFor(objects int) func(api.ID) []inventory.View {
	items := v.Items()
	if objects*v.Count() <= items {
		return v.Listing
	}
	all := make(map[api.ID][]inventory.View, items)
	for inv := range v.All() {
		for id := range inv.IDs() {
			all[id] = append(all[id], inv)
		}
	}
	return func(id api.ID) []inventory.View { return all[id] }
}

// Items returns the number of items of all inventories.
func (v View) Items() (items int) {
	for inv := range v.All() {
		items += inv.Len()
	}
	return items
}

// AddKinds adds the kinds of all objects that inventories list.
func (v View) AddKinds(gvks map[schema.GroupVersionKind]bool) {
	for inv := range v.All() {
		for it := range inv.All() {
			gvks[it.GroupVersionKind()] = true
		}
	}
}

// Objects returns the objects that the inventories list.
func (v View) Objects() map[api.ID]bool {
	ids := make(map[api.ID]bool, len(v.state.desired.Wanted()))
	for inv := range v.All() {
		for id := range inv.IDs() {
			ids[id] = true
		}
	}
	return ids
}

// ObjectsOf returns the objects that some placements want, wait for or list, or have done so before.
func (v View) ObjectsOf(placements map[api.PlacementKey]bool, before desired.Works) map[api.ID]bool {
	ids := map[api.ID]bool{}
	for p := range placements {
		for _, w := range []*work.Work{before.Of(p), v.state.desired.Works().Of(p)} {
			for _, list := range [][]*work.Manifest{w.Manifests, w.Awaited} {
				for _, m := range list {
					ids[m.ID] = true
				}
			}
		}
		if inv, found := v.Of(p); found {
			for id := range inv.IDs() {
				ids[id] = true
			}
		}
	}
	return ids
}

// findNewOwners returns the placements that wait for objects, by object.
func (v View) findNewOwners() map[api.ID]api.PlacementKey {
	out := map[api.ID]api.PlacementKey{}
	for _, w := range v.state.desired.Works() {
		p := w.Placement
		for _, m := range w.Awaited {
			other, taken := out[m.ID]
			has, otherHas := v.Owns(p, m.ID), v.Owns(other, m.ID)
			if !taken || has && !otherHas || has == otherHas && p.String() < other.String() {
				out[m.ID] = p
			}
		}
	}
	return out
}
