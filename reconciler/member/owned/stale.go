package owned

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// A Stale is an object that the inventory of a placement lists here and that the placement no
// longer wants.
type Stale struct {
	Inventory inventory.View
	Item      *inventory.Item
	// HandedOver says that another placement wants it: it is only removed from this inventory.
	HandedOver bool
	// NewOwner is the placement that waits for the object and keeps it; zero if there is none.
	NewOwner api.PlacementKey
}

// PassesOn reports whether the object is only removed from an inventory.
func (st Stale) PassesOn() bool { return st.HandedOver || st.NewOwner != api.PlacementKey{} }

// ID returns the ID of the object.
func (st Stale) ID() api.ID { return st.Item.ID() }

// Placement returns the placement that no longer wants the object.
func (st Stale) Placement() api.PlacementKey { return st.Inventory.Placement() }

// Stales returns an entry for each placement whose inventory lists an object that the placement
// no longer wants here.
func (v View) Stales(id api.ID) []Stale { return v.StalesIn(id, v.Listing(id)) }

// StalesIn is Stales for an object that certain inventories list.
func (v View) StalesIn(id api.ID, listing []inventory.View) []Stale {
	var out []Stale
	works := v.state.desired.Works()
	w, isWanted := v.state.desired.Wanted().Of(id)
	// A placement that only compares objects takes none over.
	taken := isWanted && !works.OnlyCompares(w.Placement)
	for _, inv := range listing {
		p := inv.Placement()
		if isWanted && p == w.Placement || !works.Prunes(p) {
			continue
		}
		it := inv.Of(id)
		if it == nil || works.SuspendedReason(p, id) != "" {
			continue
		}
		st := Stale{Inventory: inv, Item: it, HandedOver: taken}
		if !taken {
			owner, found := v.NewOwner(id, p, listing)
			if found && (owner == p || works.Suspended(owner)) {
				continue // the object is kept for its next owner
			}
			st.NewOwner = owner
		}
		out = append(out, st)
	}
	return out
}

// AnyStale reports whether an inventory lists an object that its placement no longer wants.
func (v View) AnyStale() bool {
	for inv := range v.All() {
		p := inv.Placement()
		for id := range inv.IDs() {
			if w, isWanted := v.state.desired.Wanted().Of(id); isWanted && w.Placement == p {
				continue
			}
			if len(v.Stales(id)) > 0 {
				return true
			}
		}
	}
	return false
}

// Plans pass objects from placement to placement as far as the ledger knows which placement has
// which objects. What follows, and findNewOwners, handles what the ledger does not know: it was lost, a commit cannot
// be read, or a cluster has missed an update. An object that another placement is to have is
// never deleted, whatever the plan says. The placement that gives it up moves it to the
// inventory of the other one, which keeps it until that placement applies it.

// NewOwner returns the placement that is to keep an object which another one gives up: a
// placement that waits for it, or one that also has it and keeps what it has. found is false if
// there is none. If there are several, one that has the object comes first, and then the first
// in order. listing are the inventories that list the object.
func (v View) NewOwner(id api.ID, from api.PlacementKey, listing []inventory.View) (owner api.PlacementKey, found bool) {
	if owner, found = v.state.newOwners[id]; found {
		return owner, true
	}
	for _, inv := range listing {
		p := inv.Placement()
		w, known := v.state.desired.Works().Find(p)
		if p != from && (!known || w.Keep) && (!found || p.String() < owner.String()) {
			owner, found = p, true
		}
	}
	return owner, found
}

// adoptedWhy is the reason why an object of an adopted inventory is not deleted.
const adoptedWhy = "it was taken over from another fleet (gitfleet adopt-fleet), and is not in the repository"

// DeletionBlocked returns the reason why the work of a placement, or the adoption of its inventory,
// prevents the deletion of a stale object together with others; empty if neither does.
func (v View) DeletionBlocked(st Stale, with []api.ID) string {
	if st.Inventory.Adopted() {
		return adoptedWhy
	}
	return v.state.desired.Works().Of(st.Placement()).DeletionBlocked(st.ID(), with)
}

// DeletionAllowed reports whether a commit allows the deletions of the placement of a stale object.
func (v View) DeletionAllowed(st Stale) bool {
	return v.state.desired.Works().Of(st.Placement()).AllowDelete
}

// Abandons reports whether a deleted placement leaves its objects on the cluster. The inventory may not say so yet, if the cluster has
// been unreachable since the strategy was changed: then the work does.
func (v View) Abandons(st Stale) bool {
	p, works := st.Placement(), v.state.desired.Works()
	return (st.Inventory.Abandon() || works.Of(p).Abandon) && !works.Placed(p)
}
