package inventory

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// Items are the objects in an inventory.
type Items struct{ compact.Map[packedItem] }

// A packedItem has the fields of an item except its ID. rest has those that are often equal for
// other items, and the UID if it cannot be packed.
type packedItem struct {
	uid  compact.UID
	rest unique.Handle[Item]
}

// Of returns one item; nil if there is none.
func (is Items) Of(id api.ID) *Item {
	p := is.Map.Of(id)
	if p == nil {
		return nil
	}
	it := p.item(id)
	return &it
}

// Has reports whether there is an item of an object.
func (is Items) Has(id api.ID) bool { return is.Map.Of(id) != nil }

// Applied reports whether the content with a hash was what was applied last of an object.
func (is Items) Applied(id api.ID, hash string) bool {
	p := is.Map.Of(id)
	return p != nil && p.rest.Value().Hash == hash
}

// GroupVersionKind returns the kind of an item in the version in which it was applied. ok is
// false if there is no such item.
func (is Items) GroupVersionKind(id api.ID) (gvk schema.GroupVersionKind, ok bool) {
	p := is.Map.Of(id)
	if p == nil {
		return gvk, false
	}
	return id.GroupKind().WithVersion(p.rest.Value().Version), true
}

// All yields every item, sorted by ID. The items must not change meanwhile.
func (is Items) All() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for id, p := range is.Map.All() {
			if !yield(p.item(id)) {
				return
			}
		}
	}
}

func (p *packedItem) item(id api.ID) Item {
	it := p.rest.Value()
	it.Group, it.Kind, it.Namespace, it.Name, it.UID = id.Group, id.Kind, id.Namespace, id.Name, p.uid.Unpack(it.UID)
	return it
}

// Put adds an item, or replaces the one of the same object.
func (is *Items) Put(it Item) {
	id := it.ID()
	var p packedItem
	it.Group, it.Kind, it.Namespace, it.Name = "", "", "", ""
	p.uid, it.UID = compact.Pack(it.UID)
	p.rest = unique.Make(it)
	is.Map.Put(id, p)
}
