package status

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement/api"
)

// usages are lists of resources that were told of late. Many clusters are alike,
// and a list takes more than half a KiB: those that say the same share one.
type usages struct {
	lists [16]api.ResourceList
	next  int // the place of the oldest
}

// share has a cluster's usage take over lists that say the same.
func (us *usages) share(u *api.ResourceUsage) {
	for _, list := range []*api.ResourceList{&u.Capacity, &u.Allocatable, &u.Available} {
		*list = us.same(*list)
	}
}

// same returns a list that says the same: an older one if there is one.
func (us *usages) same(list api.ResourceList) api.ResourceList {
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

// sameQuantity reports whether two quantities are written in the same way.
func sameQuantity(a, b resource.Quantity) bool { return a.Format == b.Format && a.Cmp(b) == 0 }
