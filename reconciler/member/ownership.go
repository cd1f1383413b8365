package member

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An ownership is what placements own on a cluster: what their inventories list, and what becomes of that. Only the recorder and the
// inventories change it.
type ownership struct {
	desired.View
	desired *desired.State
	inv     inventory.List
	// newOwners are the placements that are to have objects.
	newOwners map[api.ID]api.PlacementKey
	// scalers are the placed autoscalers by the object that they scale, and leaving those that are to be deleted; nil until a
	// pass needs them.
	scalers map[api.ID]api.ID
	leaving map[api.ID]bool
}

// setWorks replaces what the placements should have.
func (o *ownership) setWorks(works []*work.Work) {
	o.desired.Replace(works, o.better)
	o.newOwners, o.scalers, o.leaving = o.findNewOwners(), nil, nil
}

// mayApply reports whether an object may be applied now, as far as the hooks of its chart allow it.
func (o *ownership) mayApply(w desired.Object) (state hooks.State, why string) {
	return o.Hooks().For(w.Placement, w.Manifest, func(id api.ID) *inventory.Item { return o.item(w.Placement, id) })
}

// better reports whether new, and not old, gets an object that both placements want: the one
// that owns it keeps it. A plan gives each object of a cluster to one placement, unless the
// ledger was lost and the cluster is paused: then only the inventories know the owner.
func (o *ownership) better(old, new desired.Object) bool {
	return o.owns(new.Placement, new.Manifest.ID) && !o.owns(old.Placement, old.Manifest.ID)
}

// inventory returns the inventory of a placement, which is empty if it is new.
func (o *ownership) inventory(p api.PlacementKey) *inventory.Inventory {
	inv := o.inv.Of(p)
	if inv == nil {
		inv = inventory.New(p, placement.Revision{})
		o.inv.Put(inv)
	}
	return inv
}

// replace replaces all inventories by those that were read.
func (o *ownership) replace(all inventory.List) {
	o.inv = all
	o.newOwners = o.findNewOwners()
}

// remove forgets the inventory of a placement, which was deleted.
func (o *ownership) remove(p api.PlacementKey) { o.inv.Drop(p) }

// put records an object in the inventory of a placement, which has one.
func (o *ownership) put(p api.PlacementKey, it inventory.Item) { o.inv.Of(p).Items.Put(it) }

// item returns the entry of an object in the inventory of a placement; nil if there is none.
func (o *ownership) item(p api.PlacementKey, id api.ID) *inventory.Item {
	if inv := o.inv.Of(p); inv != nil {
		return inv.Items.Of(id)
	}
	return nil
}

// applied reports whether an object is recorded as applied with the content that is wanted.
func (o *ownership) applied(w desired.Object) bool {
	inv := o.inv.Of(w.Placement)
	return inv != nil && inv.Items.Applied(w.Manifest.ID, w.Manifest.Hash)
}

// owns reports whether the inventory of a placement lists an object.
func (o *ownership) owns(p api.PlacementKey, id api.ID) bool {
	inv := o.inv.Of(p)
	return inv != nil && inv.Items.Has(id)
}

// lists reports whether any inventory lists an object.
func (o *ownership) lists(id api.ID) bool { return len(o.listing(id)) > 0 }

// listing returns the inventories that list an object.
func (o *ownership) listing(id api.ID) (out []*inventory.Inventory) {
	for _, inv := range o.inv {
		if inv.Items.Has(id) {
			out = append(out, inv)
		}
	}
	return out
}

// listingsFor returns listing for use with many objects, while nothing is added to inventories. If there are many objects and
// placements, it builds an index instead of looking into each inventory for each object.
func (o *ownership) listingsFor(objects int) func(api.ID) []*inventory.Inventory {
	items := 0
	for _, inv := range o.inv {
		items += inv.Items.Len()
	}
	if objects*len(o.inv) <= items {
		return o.listing
	}
	all := make(map[api.ID][]*inventory.Inventory, items)
	for _, inv := range o.inv {
		for id := range inv.Items.IDs() {
			all[id] = append(all[id], inv)
		}
	}
	return func(id api.ID) []*inventory.Inventory { return all[id] }
}

// addKindsOfInventories adds the kinds of all objects that inventories list.
func (o *ownership) addKindsOfInventories(gvks map[schema.GroupVersionKind]bool) {
	for _, inv := range o.inv {
		for it := range inv.Items.All() {
			gvks[it.GroupVersionKind()] = true
		}
	}
}

// inventoried returns the objects that the inventories list.
func (o *ownership) inventoried() map[api.ID]bool {
	ids := make(map[api.ID]bool, len(o.Wanted()))
	for _, inv := range o.inv {
		for id := range inv.Items.IDs() {
			ids[id] = true
		}
	}
	return ids
}

// A stale is an object that the inventory of a placement lists here and that the placement no
// longer wants.
type stale struct {
	inv  *inventory.Inventory
	item *inventory.Item
	// handedOver says that another placement wants it: it is only removed from this inventory.
	handedOver bool
	// newOwner is the placement that waits for the object and keeps it; zero if there is none.
	newOwner api.PlacementKey
}

// passesOn reports whether the object is only removed from an inventory.
func (st *stale) passesOn() bool { return st.handedOver || st.newOwner != api.PlacementKey{} }

// stales returns an entry for each placement whose inventory lists an object that the placement
// no longer wants here.
func (o *ownership) stales(id api.ID) []stale { return o.stalesIn(id, o.listing(id)) }

// stalesIn is stales for an object that certain inventories list.
func (o *ownership) stalesIn(id api.ID, listing []*inventory.Inventory) []stale {
	var out []stale
	w, isWanted := o.Wanted().Of(id)
	// A placement that only compares objects takes none over.
	taken := isWanted && !o.Works().OnlyCompares(w.Placement)
	for _, inv := range listing {
		p := inv.Placement()
		if isWanted && p == w.Placement || !o.Works().Prunes(p) {
			continue
		}
		it := inv.Items.Of(id)
		if it == nil || o.Works().SuspendedReason(p, id) != "" {
			continue
		}
		st := stale{inv: inv, item: it, handedOver: taken}
		if !taken {
			owner, found := o.newOwner(id, p, listing)
			if found && (owner == p || o.Works().Suspended(owner)) {
				continue // the object is kept for its next owner
			}
			st.newOwner = owner
		}
		out = append(out, st)
	}
	return out
}

// Plans pass objects from placement to placement as far as the ledger knows which placement has
// which objects. The next functions handle what the ledger does not know: it was lost, a commit cannot
// be read, or a cluster has missed an update. An object that another placement is to have is
// never deleted, whatever the plan says. The placement that gives it up moves it to the
// inventory of the other one, which keeps it until that placement applies it.

// newOwner returns the placement that is to keep an object which another one gives up: a
// placement that waits for it, or one that also has it and keeps what it has. found is false if
// there is none. If there are several, one that has the object comes first, and then the first
// in order. listing are the inventories that list the object.
func (o *ownership) newOwner(id api.ID, from api.PlacementKey, listing []*inventory.Inventory) (owner api.PlacementKey, found bool) {
	if owner, found = o.newOwners[id]; found {
		return owner, true
	}
	for _, inv := range listing {
		p := inv.Placement()
		w, known := o.Works().Find(p)
		if p != from && (!known || w.Keep) && (!found || p.String() < owner.String()) {
			owner, found = p, true
		}
	}
	return owner, found
}

// findNewOwners returns the placements that wait for objects, by object.
func (o *ownership) findNewOwners() map[api.ID]api.PlacementKey {
	out := map[api.ID]api.PlacementKey{}
	for _, w := range o.Works() {
		p := w.Placement
		for _, m := range w.Awaited {
			other, taken := out[m.ID]
			has, otherHas := o.owns(p, m.ID), o.owns(other, m.ID)
			if !taken || has && !otherHas || has == otherHas && p.String() < other.String() {
				out[m.ID] = p
			}
		}
	}
	return out
}

// adoptedWhy is the reason why an object of an adopted inventory is not deleted.
const adoptedWhy = "it was taken over from another fleet (gitfleet adopt-fleet), and is not in the repository"

// deletionBlocked returns the reason why the work of a placement, or the adoption of its inventory,
// prevents the deletion of a stale object together with others; empty if neither does.
func (o *ownership) deletionBlocked(st stale, with []api.ID) string {
	if st.inv.Adopted {
		return adoptedWhy
	}
	w := o.Works().Of(st.inv.Placement())
	return w.DeletionBlocked(st.item.ID(), with)
}

// allowed reports whether a commit allows the deletions of a placement.
func (o *ownership) allowed(st stale) bool { return o.Works().Of(st.inv.Placement()).AllowDelete }

// abandons reports whether a deleted placement leaves its objects on the cluster. The work says
// so even if the inventory does not: the cluster may have been unreachable since the strategy changed.
func (o *ownership) abandons(st stale) bool {
	p := st.inv.Placement()
	return (st.inv.Abandon || o.Works().Of(p).Abandon) && !o.Works().Placed(p)
}

// releaseAll makes all objects undesired, but keeps them on the cluster.
func (o *ownership) releaseAll() {
	var works []*work.Work
	for _, inv := range o.inv {
		inv.Abandon = true
		works = append(works, &work.Work{Placement: inv.Placement(), Remove: true, Abandon: true})
	}
	o.setWorks(works)
}

// scalerOf returns what placements say about the autoscaler of an object: which one is among the objects that the
// cluster has or waits for and, if the object is to be changed, which are to be deleted at the same time. Objects are deleted
// after others are applied; what an autoscaler would set until then is not asked for.
func (o *ownership) scalerOf(t apply.Task) autoscaler.Placed {
	if o.scalers == nil {
		o.scalers = map[api.ID]api.ID{}
		for _, w := range o.Works() {
			for _, list := range [][]*work.Manifest{w.Awaited, w.Manifests} {
				for _, m := range list {
					if target, ok := controllers.Scales(m.Object.Content); ok {
						o.scalers[target] = m.ID
					}
				}
			}
		}
	}
	placed := autoscaler.Placed{Scaler: o.scalers[t.Manifest.ID]}
	if t.Item != nil && t.Item.Hash != t.Manifest.Hash && autoscaler.SetsReplicas(t.Manifest.Object.Content) {
		placed.Leaving = o.leavingScalers()
	}
	return placed
}

// leavingScalers returns the autoscalers that are to be deleted, as far as nothing blocks their deletion.
func (o *ownership) leavingScalers() map[api.ID]bool {
	if o.leaving != nil {
		return o.leaving
	}
	o.leaving = map[api.ID]bool{}
	scalers := o.inventoried()
	maps.DeleteFunc(scalers, func(id api.ID, _ bool) bool { return !controllers.IsAutoscaler(id.GroupKind()) })
	listing := o.listingsFor(len(scalers))
	for id := range scalers {
		stales := o.stalesIn(id, listing(id))
		o.leaving[id] = len(stales) > 0 && !slices.ContainsFunc(stales, func(st stale) bool {
			return st.passesOn() || o.abandons(st) || o.deletionBlocked(st, []api.ID{id}) != ""
		})
	}
	return o.leaving
}

// superseded has the manifests that were applied last, of the objects that are to have another one and
// do not have it yet. Ownership does not show what others have changed since: gitfleet no longer owns
// such a field, and would leave it there if the new manifest has no such field. An agent keeps it when its
// connection is replaced; after a restart it is empty.
type superseded struct {
	manifests map[api.ID]*work.Manifest
	// last are the objects that were wanted by the last works.
	last desired.Objects
}

// of returns the manifest that was applied last according to the inventory; nil if it is the one that is
// wanted, or not known.
func (s *superseded) of(it *inventory.Item, id api.ID) *work.Manifest {
	if m := s.manifests[id]; m != nil && it != nil && m.Hash == it.Hash {
		return m
	}
	return nil
}

// update is called after new works have become those of the owner.
func (s *superseded) update(o *ownership) {
	manifests := map[api.ID]*work.Manifest{}
	for id, w := range o.Wanted().All() {
		old, _ := s.last.Of(id)
		if old.Manifest == w.Manifest && s.manifests[id] == nil {
			continue
		}
		it := o.item(w.Placement, id)
		if it == nil || it.Hash == w.Manifest.Hash {
			continue
		}
		if m := s.of(it, id); m != nil {
			manifests[id] = m
		} else if old.Manifest != nil && old.Manifest.Hash == it.Hash {
			manifests[id] = old.Manifest
		}
	}
	s.manifests, s.last = manifests, o.Wanted()
}

// objectsOf returns the objects that some placements want, wait for or list, or have done so before.
func (o *ownership) objectsOf(placements map[api.PlacementKey]bool, before desired.Works) map[api.ID]bool {
	ids := map[api.ID]bool{}
	for p := range placements {
		for _, w := range []*work.Work{before.Of(p), o.Works().Of(p)} {
			for _, list := range [][]*work.Manifest{w.Manifests, w.Awaited} {
				for _, m := range list {
					ids[m.ID] = true
				}
			}
		}
		if inv := o.inv.Of(p); inv != nil {
			for id := range inv.Items.IDs() {
				ids[id] = true
			}
		}
	}
	return ids
}

// anyStale reports whether an inventory lists an object that its placement no longer wants.
func (o *ownership) anyStale() bool {
	for _, inv := range o.inv {
		p := inv.Placement()
		for id := range inv.Items.IDs() {
			if w, isWanted := o.Wanted().Of(id); isWanted && w.Placement == p {
				continue
			}
			if len(o.stales(id)) > 0 {
				return true
			}
		}
	}
	return false
}
