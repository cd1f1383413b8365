package inventory

import (
	"slices"
	"unique"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Serials count how many times the inventory of each placement was written. The number is on the
// cluster too, so that a lower one there shows that an earlier inventory was put back, or that the
// inventory was deleted.
//
// They are sorted by placement: a map takes more than twice the memory. The zero value is empty.
type Serials []serial

// A serial is the number of one placement, which members share.
type serial struct {
	placement unique.Handle[api.PlacementKey]
	number    uint64
}

// SerialsOf returns serial numbers by placement.
func SerialsOf(numbers map[api.PlacementKey]uint64) Serials {
	s := make(Serials, 0, len(numbers))
	for p, number := range numbers {
		s = append(s, serial{unique.Make(p), number})
	}
	slices.SortFunc(s, func(a, b serial) int { return a.placement.Value().Compare(b.placement.Value()) })
	return s
}

// find returns where the number of a placement is, or would be.
func (s Serials) find(p api.PlacementKey) (at int, found bool) {
	return slices.BinarySearchFunc(s, p, func(s serial, p api.PlacementKey) int { return s.placement.Value().Compare(p) })
}

// Of returns the number of a placement; zero if there is none.
func (s Serials) Of(p api.PlacementKey) uint64 {
	if at, found := s.find(p); found {
		return s[at].number
	}
	return 0
}

func (s *Serials) set(p api.PlacementKey, number uint64) {
	if at, found := s.find(p); found {
		(*s)[at].number = number
	} else {
		*s = slices.Insert(*s, at, serial{unique.Make(p), number})
	}
}

func (s *Serials) drop(p api.PlacementKey) {
	if at, found := s.find(p); found {
		*s = slices.Delete(*s, at, at+1)
	}
}

// compare returns the placements whose inventory on the cluster is missing or has a lower serial number
// than the last that was written, sorted. Such an inventory is written again. The numbers of all others
// are recorded.
func (s *Serials) compare(all List) (setBack []api.PlacementKey) {
	for _, known := range *s {
		p := known.placement.Value()
		if inv := all.Of(p); inv == nil || inv.serial < known.number {
			setBack = append(setBack, p)
		}
	}
	for _, inv := range all {
		if p := inv.Placement(); inv.serial < s.Of(p) {
			inv.Invalidate()
		} else {
			s.set(p, inv.serial)
		}
	}
	return setBack
}
