package member

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// items are the objects in an inventory.
type items struct{ compact.Map[packedItem] }

type packedItem struct {
	uid  compact.UID
	rest unique.Handle[commonItem]
}

// commonItem has the fields of an item that are often equal for other items.
type commonItem struct {
	uid                                    types.UID // set if it cannot be packed
	version, hash, managed, others, commit string
}

// of returns one item; nil if there is none.
func (is items) of(id api.ID) *item {
	p := is.Map.Of(id)
	if p == nil {
		return nil
	}
	it := p.item(id)
	return &it
}

func (is items) has(id api.ID) bool { return is.Map.Of(id) != nil }

// gvk returns the kind of an item in the version in which it was applied. ok is false if there
// is no such item.
func (is items) gvk(id api.ID) (gvk schema.GroupVersionKind, ok bool) {
	p := is.Map.Of(id)
	if p == nil {
		return gvk, false
	}
	return id.GroupKind().WithVersion(p.rest.Value().version), true
}

// all yields every item, sorted by ID. The items must not change meanwhile.
func (is items) all() iter.Seq[item] {
	return func(yield func(item) bool) {
		for id, p := range is.Map.All() {
			if !yield(p.item(id)) {
				return
			}
		}
	}
}

func (p *packedItem) item(id api.ID) item {
	rest := p.rest.Value()
	return item{
		Group: id.Group, Version: rest.version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
		Hash: rest.hash, Managed: rest.managed, Others: rest.others, UID: p.uid.Unpack(rest.uid), Commit: rest.commit,
	}
}

func (is *items) put(it item) {
	uid, whole := compact.Pack(it.UID)
	is.Map.Put(it.id(), packedItem{
		uid:  uid,
		rest: unique.Make(commonItem{uid: whole, version: it.Version, hash: it.Hash, managed: it.Managed, others: it.Others, commit: it.Commit}),
	})
}
