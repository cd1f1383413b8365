package inventory

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// Items are the objects in an inventory.
type Items struct{ compact.Map[packedItem] }

type packedItem struct {
	uid  compact.UID
	rest unique.Handle[commonItem]
}

// commonItem has the fields of an item that are often equal for other items.
type commonItem struct {
	uid                                    types.UID // set if it cannot be packed
	version, hash, managed, others, commit string
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

// GroupVersionKind returns the kind of an item in the version in which it was applied. ok is
// false if there is no such item.
func (is Items) GroupVersionKind(id api.ID) (gvk schema.GroupVersionKind, ok bool) {
	p := is.Map.Of(id)
	if p == nil {
		return gvk, false
	}
	return id.GroupKind().WithVersion(p.rest.Value().version), true
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
	rest := p.rest.Value()
	return Item{
		Group: id.Group, Version: rest.version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
		Hash: rest.hash, Managed: rest.managed, Others: rest.others, UID: p.uid.Unpack(rest.uid), Commit: rest.commit,
	}
}

// Put adds an item, or replaces the one of the same object.
func (is *Items) Put(it Item) {
	uid, whole := compact.Pack(it.UID)
	is.Map.Put(it.ID(), packedItem{
		uid:  uid,
		rest: unique.Make(commonItem{uid: whole, version: it.Version, hash: it.Hash, managed: it.Managed, others: it.Others, commit: it.Commit}),
	})
}
