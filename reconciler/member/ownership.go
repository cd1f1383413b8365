package member

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An assignment is what placements should have on a cluster. It is replaced as a whole, by setWorks of an ownership.
type assignment struct {
	works  desired
	wanted wantedObjects
	// hooks are the charts with hooks.
	hooks hooks.Order
	// hidden are the Secrets whose values no text may contain; nil until a pass needs them.
	hidden *diff.Secrets
}

// An ownership is what placements own on a cluster: what their inventories list, and what becomes of that. Only the recorder and the
// inventories change it.
type ownership struct {
	*assignment
	inv inventory.List
	// newOwners are the placements that are to have objects.
	newOwners map[api.ID]api.PlacementKey
	// scalers are the placed autoscalers by the object that they scale, and leaving those that are to be deleted; nil until a
	// pass needs them.
	scalers map[api.ID]api.ID
	leaving map[api.ID]bool
}

// desired is what a cluster should have, sorted by placement. It is replaced as a whole, and never
// changed.
type desired []*work.Work

// desiredOf returns works as desired, which takes no memory if they are sorted, as those of a plan are.
func desiredOf(works []*work.Work) desired {
	order := func(a, b *work.Work) int { return a.Placement.Compare(b.Placement) }
	if slices.IsSortedFunc(works, order) {
		return works
	}
	return slices.SortedFunc(slices.Values(works), order)
}

// find returns the work of a placement, and whether it has one here.
func (ws desired) find(p api.PlacementKey) (w *work.Work, found bool) {
	w = work.Find(ws, p)
	return w, w != nil
}

// of returns the work of a placement; a zero one if it has none here.
func (ws desired) of(p api.PlacementKey) *work.Work {
	if w, found := ws.find(p); found {
		return w
	}
	return &work.Work{}
}

// placed reports whether a placement has anything here.
func (ws desired) placed(p api.PlacementKey) bool {
	w, ok := ws.find(p)
	return ok && !w.Remove
}

// onlyCompares reports whether a placement compares and never writes.
func (ws desired) onlyCompares(p api.PlacementKey) bool {
	return ws.of(p).Strategy.Type == api.ReportDiff
}

// prunes reports whether objects are removed that the inventory of a placement lists and its
// work does not. They are not while the work is unknown.
func (ws desired) prunes(p api.PlacementKey) bool {
	w, known := ws.find(p)
	return known && !w.Keep && w.Strategy.Type != api.ReportDiff
}

// protects reports whether a placement leaves drift (IfNotDrifted).
func (ws desired) protects(p api.PlacementKey) bool {
	return ws.of(p).Strategy.WhenToApply == api.ApplyIfNotDrifted
}

// seesAdditions reports whether additions to the objects of a placement are looked for: a full comparison
// finds them anyway.
func (ws desired) seesAdditions(p api.PlacementKey) bool {
	return !ws.onlyCompares(p) && !diff.CompareAfter(ws.of(p).Strategy)
}

// suspended reports whether nothing is written for a placement.
func (ws desired) suspended(p api.PlacementKey) bool { return ws.of(p).Suspended != "" }

// suspendedReason returns why an object is not written for a placement; empty if it is written.
func (ws desired) suspendedReason(p api.PlacementKey, id api.ID) string {
	return ws.of(p).SuspendedReason(id)
}

// markerStale reports whether the placement in an object's marker no longer has a claim to the
// object: it does not exist on this cluster, or gives the object up.
func (ws desired) markerStale(placement string) bool {
	for _, w := range ws {
		if w.Placement.String() == placement {
			return ws.prunes(w.Placement)
		}
	}
	return true
}

// A wanted is a desired object with its placement.
type wanted struct {
	placement api.PlacementKey
	manifest  *work.Manifest
}

// gvk returns the kind of the object in the version in which it is applied.
func (w wanted) gvk() schema.GroupVersionKind { return w.manifest.Object.Content.GroupVersionKind() }

// wantedObjects are the desired objects, sorted by ID.
type wantedObjects []packedWanted

// A packedWanted is a wanted that shares the key of its placement with the others.
type packedWanted struct {
	placement *api.PlacementKey
	manifest  *work.Manifest
}

// wantedObjectsOf returns the sorted objects of works. If two works have the same object, better
// decides whether the second gets it.
func wantedObjectsOf(works []*work.Work, better func(old, new wanted) bool) wantedObjects {
	n := 0
	for _, w := range works {
		n += len(w.Manifests)
	}
	all := make(wantedObjects, 0, n)
	for i := range works {
		for _, m := range works[i].Manifests {
			all = append(all, packedWanted{&works[i].Placement, m})
		}
	}
	slices.SortStableFunc(all, func(a, b packedWanted) int { return a.manifest.ID.Compare(b.manifest.ID) })
	out := all[:0]
	for _, w := range all {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].manifest.ID != w.manifest.ID:
			out = append(out, w)
		case better(out[last].unpack(), w.unpack()):
			out[last] = w
		}
	}
	return out
}

func (w packedWanted) unpack() wanted { return wanted{*w.placement, w.manifest} }

// of returns the work that has an object, and whether there is one.
func (ws wantedObjects) of(id api.ID) (wanted, bool) {
	i, found := slices.BinarySearchFunc(ws, id, func(w packedWanted, id api.ID) int { return w.manifest.ID.Compare(id) })
	if !found {
		return wanted{}, false
	}
	return ws[i].unpack(), true
}

// manifests yields the manifests that are wanted, by ID.
func (ws wantedObjects) manifests() iter.Seq[*work.Manifest] {
	return func(yield func(*work.Manifest) bool) {
		for _, w := range ws {
			if !yield(w.manifest) {
				return
			}
		}
	}
}

// all yields everything that is wanted, by ID.
func (ws wantedObjects) all() iter.Seq2[api.ID, wanted] {
	return func(yield func(api.ID, wanted) bool) {
		for _, w := range ws {
			if !yield(w.manifest.ID, w.unpack()) {
				return
			}
		}
	}
}

// definition returns the desired definition of a kind on this cluster; nil if there is none.
func (a *assignment) definition(gvk schema.GroupVersionKind) *wanted {
	for id, w := range a.wanted.all() {
		if id.GroupKind() == discovery.Definitions && discovery.Defines(w.manifest.Object.Content, gvk) {
			return &w
		}
	}
	return nil
}

// secrets returns the Secrets that the cluster should have. They are collected at most once in
// a pass.
func (a *assignment) secrets() diff.Secrets {
	if a.hidden != nil {
		return *a.hidden
	}
	var all []*unstructured.Unstructured
	for id, w := range a.wanted.all() {
		if id.Group == "" && id.Kind == "Secret" {
			all = append(all, w.manifest.Object.Content)
		}
	}
	found := diff.SecretsOf(all...)
	a.hidden = &found
	return found
}

// setWorks replaces what the placements should have.
func (o *ownership) setWorks(works []*work.Work) {
	o.works = desiredOf(works)
	o.wanted, o.hooks, o.hidden = wantedObjectsOf(works, o.better), hooks.Of(works), nil
	o.newOwners, o.scalers, o.leaving = o.findNewOwners(), nil, nil
}

// mayApply reports whether an object may be applied now, as far as the hooks of its chart allow it.
func (o *ownership) mayApply(w wanted) (state hooks.State, why string) {
	return o.hooks.For(w.placement, w.manifest, func(id api.ID) *inventory.Item { return o.item(w.placement, id) })
}

// better reports whether new, and not old, gets an object that both placements want: the one
// that owns it keeps it. A plan gives each object of a cluster to one placement, unless the
// ledger was lost and the cluster is paused: then only the inventories know the owner.
func (o *ownership) better(old, new wanted) bool {
	return o.owns(new.placement, new.manifest.ID) && !o.owns(old.placement, old.manifest.ID)
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
func (o *ownership) applied(w wanted) bool {
	inv := o.inv.Of(w.placement)
	return inv != nil && inv.Items.Applied(w.manifest.ID, w.manifest.Hash)
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
	ids := make(map[api.ID]bool, len(o.wanted))
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
	w, isWanted := o.wanted.of(id)
	// A placement that only compares objects takes none over.
	taken := isWanted && !o.works.onlyCompares(w.placement)
	for _, inv := range listing {
		p := inv.Placement()
		if isWanted && p == w.placement || !o.works.prunes(p) {
			continue
		}
		it := inv.Items.Of(id)
		if it == nil || o.works.suspendedReason(p, id) != "" {
			continue
		}
		st := stale{inv: inv, item: it, handedOver: taken}
		if !taken {
			owner, found := o.newOwner(id, p, listing)
			if found && (owner == p || o.works.suspended(owner)) {
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
		w, known := o.works.find(p)
		if p != from && (!known || w.Keep) && (!found || p.String() < owner.String()) {
			owner, found = p, true
		}
	}
	return owner, found
}

// findNewOwners returns the placements that wait for objects, by object.
func (o *ownership) findNewOwners() map[api.ID]api.PlacementKey {
	out := map[api.ID]api.PlacementKey{}
	for _, w := range o.works {
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

// deletionHeld returns the reason why the work of a placement, or the adoption of its inventory,
// prevents the deletion of a stale object together with others; empty if neither does.
func (o *ownership) deletionHeld(st stale, with []api.ID) string {
	if st.inv.Adopted {
		return adoptedWhy
	}
	w := o.works.of(st.inv.Placement())
	return w.Held(st.item.ID(), with)
}

// allowed reports whether a commit allows the deletions of a placement.
func (o *ownership) allowed(st stale) bool { return o.works.of(st.inv.Placement()).AllowDelete }

// abandons reports whether a deleted placement leaves its objects on the cluster. The work says
// so even if the inventory does not: the cluster may have been unreachable since the strategy changed.
func (o *ownership) abandons(st stale) bool {
	p := st.inv.Placement()
	return (st.inv.Abandon || o.works.of(p).Abandon) && !o.works.placed(p)
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
func (o *ownership) scalerOf(t task) autoscaler.Placed {
	if o.scalers == nil {
		o.scalers = map[api.ID]api.ID{}
		for _, w := range o.works {
			for _, list := range [][]*work.Manifest{w.Awaited, w.Manifests} {
				for _, m := range list {
					if target, ok := controllers.Scales(m.Object.Content); ok {
						o.scalers[target] = m.ID
					}
				}
			}
		}
	}
	placed := autoscaler.Placed{Scaler: o.scalers[t.manifest.ID]}
	if t.item != nil && t.item.Hash != t.manifest.Hash && autoscaler.SetsReplicas(t.manifest.Object.Content) {
		placed.Leaving = o.leavingScalers()
	}
	return placed
}

// leavingScalers returns the autoscalers that are to be deleted, as far as nothing holds their deletion.
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
			return st.passesOn() || o.abandons(st) || o.deletionHeld(st, []api.ID{id}) != ""
		})
	}
	return o.leaving
}
