package member

import (
	"iter"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// wants are the desired objects, sorted by ID.
type wants []want

type want struct {
	placement *api.PlacementKey
	manifest  *work.Manifest
}

// wantsOf returns the sorted objects of works. If two works have the same object, better
// decides whether the second gets it.
func wantsOf(works []work.Work, better func(old, new wanted) bool) wants {
	n := 0
	for _, w := range works {
		n += len(w.Manifests)
	}
	all := make(wants, 0, n)
	for i := range works {
		for _, m := range works[i].Manifests {
			all = append(all, want{&works[i].Placement, m})
		}
	}
	slices.SortStableFunc(all, func(a, b want) int { return a.manifest.ID.Compare(b.manifest.ID) })
	out := all[:0]
	for _, w := range all {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].manifest.ID != w.manifest.ID:
			out = append(out, w)
		case better(out[last].wanted(), w.wanted()):
			out[last] = w
		}
	}
	return out
}

func (w want) wanted() wanted { return wanted{*w.placement, w.manifest} }

// of returns the work that has an object, and whether there is one.
func (ws wants) of(id api.ID) (wanted, bool) {
	i, found := slices.BinarySearchFunc(ws, id, func(w want, id api.ID) int { return w.manifest.ID.Compare(id) })
	if !found {
		return wanted{}, false
	}
	return ws[i].wanted(), true
}

// manifests yields the manifests that are wanted, by ID.
func (ws wants) manifests() iter.Seq[*work.Manifest] {
	return func(yield func(*work.Manifest) bool) {
		for _, w := range ws {
			if !yield(w.manifest) {
				return
			}
		}
	}
}

// all yields everything that is wanted, by ID.
func (ws wants) all() iter.Seq2[api.ID, wanted] {
	return func(yield func(api.ID, wanted) bool) {
		for _, w := range ws {
			if !yield(w.manifest.ID, w.wanted()) {
				return
			}
		}
	}
}
