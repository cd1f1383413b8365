package inventory

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Serials count how many times the inventory of each placement was written. The number is on the
// cluster too, so that a lower one there shows that an earlier inventory was put back, or that the
// inventory was deleted.
type Serials map[api.PlacementKey]uint64

// compare returns the placements whose inventory on the cluster is missing or has a lower serial number
// than the last that was written, sorted. Such an inventory is written again. The numbers of all others
// are recorded.
func (s Serials) compare(all List) (setBack []api.PlacementKey) {
	for p, known := range s {
		if inv := all.Of(p); inv == nil || inv.serial < known {
			setBack = append(setBack, p)
		}
	}
	for _, inv := range all {
		if p := inv.Placement(); inv.serial < s[p] {
			inv.Invalidate()
		} else {
			s[p] = inv.serial
		}
	}
	slices.SortFunc(setBack, api.PlacementKey.Compare)
	return setBack
}
