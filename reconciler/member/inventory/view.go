package inventory

import (
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A View reads an inventory, and cannot change it. It follows the changes of the inventory. The zero value reads none, and has no
// methods that may be called.
type View struct{ inv *Inventory }

// View returns a view of the inventory; the zero value for nil.
func (inv *Inventory) View() View { return View{inv} }

// Placement returns the key of the placement that the inventory belongs to.
func (v View) Placement() api.PlacementKey { return v.inv.Placement() }

// Revision returns the revision that the placement has reached on the cluster.
func (v View) Revision() placement.Revision { return v.inv.Revision() }

// Abandon reports whether the objects stay when the placement is deleted.
func (v View) Abandon() bool { return v.inv.Abandon }

// Adopted reports whether a user adopted the inventory from another fleet, and it still has objects which are not in the repository.
func (v View) Adopted() bool { return v.inv.Adopted }

// Stored reports whether the inventory was on the cluster when it was last read or written.
func (v View) Stored() bool { return v.inv.Stored() }

// Applied returns when the inventory was last written; see Inventory.Applied.
func (v View) Applied() int64 { return v.inv.Applied() }

// Len returns the number of items.
func (v View) Len() int { return v.inv.Items.Len() }

// Of returns one item; nil if there is none.
func (v View) Of(id api.ID) *Item { return v.inv.Items.Of(id) }

// Has reports whether the inventory lists an object.
func (v View) Has(id api.ID) bool { return v.inv.Items.Has(id) }

// GroupVersionKind returns the kind of an item in the version in which it was applied. ok is false if there is no such item.
func (v View) GroupVersionKind(id api.ID) (gvk schema.GroupVersionKind, ok bool) {
	return v.inv.Items.GroupVersionKind(id)
}

// All yields every item, sorted by ID. The items must not change meanwhile.
func (v View) All() iter.Seq[Item] { return v.inv.Items.All() }

// IDs yields the objects, sorted.
func (v View) IDs() iter.Seq[api.ID] { return v.inv.Items.IDs() }
