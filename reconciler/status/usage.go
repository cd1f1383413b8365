package status

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement/api"
)

// usages are recently reported resource lists. A list needs more than half a KiB, and many
// clusters have equal ones, which are shared.
type usages struct {
	lists [16]api.ResourceList
	next  int // position of the oldest
}

// share replaces the lists of a cluster's usage by equal shared ones.
func (us *usages) share(u *api.ResourceUsage) {
	for _, list := range []*api.ResourceList{&u.Capacity, &u.Allocatable, &u.Available} {
		*list = us.shared(*list)
	}
}

// shared returns an equal earlier list if there is one, and otherwise the list itself.
func (us *usages) shared(list api.ResourceList) api.ResourceList {
	if list == nil {
		return nil
	}
	for _, known := range us.lists {
		if known != nil && maps.EqualFunc(known, list, sameQuantity) {
			return known
		}
	}
	us.lists[us.next] = list
	us.next = (us.next + 1) % len(us.lists)
	return list
}

// sameQuantity reports whether two quantities are written the same way.
func sameQuantity(a, b resource.Quantity) bool { return a.Format == b.Format && a.Cmp(b) == 0 }
