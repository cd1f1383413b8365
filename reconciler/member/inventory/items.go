package inventory

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
)

// An Item is an object that we have applied, or may have.
type Item struct {
	Group     string `json:"g,omitempty"`
	Version   string `json:"v"`
	Kind      string `json:"k"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	// Hash is the hash of the content that was applied last; empty if the object was only
	// announced.
	Hash string `json:"h,omitempty"`
	// Managed is the hash of our managedFields entry after the last apply.
	Managed string `json:"m,omitempty"`
	// OthersState is that of the observed.Object whose drift Git adopted: it had the values of
	// the new version already, and was not applied. It is empty if we own all applied fields,
	// since Managed then shows every change.
	OthersState string    `json:"o,omitempty"`
	UID         types.UID `json:"u,omitempty"`
	// Commit is the commit that last changed the object.
	Commit string `json:"c,omitempty"`
	// End is how the object has run to its end with the content of Hash, so that it does not run
	// again after a controller has deleted it; empty if it has not.
	End End `json:"e,omitempty"`
	// Left are the fields that Git has removed and that were still there after the last apply.
	Left diff.Left `json:"l,omitempty"`
}

// An End is how an object has ended that runs to an end, such as a Job.
type End string

// The ends.
const (
	Ended  End = "ended"
	Failed End = "failed"
)

// ID returns the ID of the object.
func (i *Item) ID() api.ID {
	return api.ID{Group: i.Group, Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

// GroupVersionKind returns the kind of the object in the version in which it was applied.
func (i *Item) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.Group, Version: i.Version, Kind: i.Kind}
}

// text returns the size of the texts that are kept of an item, in bytes, without the UID and the commit.
func (i *Item) text() int {
	return len(i.Group) + len(i.Version) + len(i.Kind) + len(i.Namespace) + len(i.Name) + len(i.Hash) + len(i.Managed) + len(i.OthersState) + len(i.End) + len(i.Left)
}

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

// Has reports whether the inventory lists an object.
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
