package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A board has what each cluster shall hold, by placement. A list on it is never
// changed, only replaced, so that who knows it need not look again.
type board struct {
	lists map[string][]work.Work
}

// An edit replaces what a list has of one placement.
type edit struct {
	key  api.PlacementKey
	work *work.Work // nil: nothing any more
}

// pin brings the lists up to date when some thoughts are not what they were. It
// returns the placements whose thoughts they are.
func (b *board) pin(before, after map[api.PlacementKey]*thought) map[api.PlacementKey]bool {
	changed := map[api.PlacementKey]bool{}
	edits := map[string][]edit{}
	for key, th := range after {
		if old := before[key]; old != th {
			changed[key] = true
			compare(key, old, th, edits)
		}
	}
	for key, old := range before {
		if after[key] == nil {
			changed[key] = true
			compare(key, old, nil, edits)
		}
	}
	b.apply(edits)
	return changed
}

// compare lists on which clusters two thoughts about a placement differ. Their
// works are by cluster.
func compare(key api.PlacementKey, old, now *thought, edits map[string][]edit) {
	var was, is []assigned
	if old != nil {
		was = old.works
	}
	if now != nil {
		is = now.works
	}
	for len(was)+len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].cluster < is[0].cluster:
			edits[was[0].cluster] = append(edits[was[0].cluster], edit{key: key})
			was = was[1:]
		case len(was) == 0 || is[0].cluster < was[0].cluster:
			edits[is[0].cluster] = append(edits[is[0].cluster], edit{key, &is[0].work})
			is = is[1:]
		default:
			if !sameWork(&was[0].work, &is[0].work) {
				edits[is[0].cluster] = append(edits[is[0].cluster], edit{key, &is[0].work})
			}
			was, is = was[1:], is[1:]
		}
	}
}

// sameWork reports whether two works are equal and share their lists of manifests.
func sameWork(a, b *work.Work) bool {
	return a.Revision == b.Revision && a.Strategy == b.Strategy && identical(a.Manifests, b.Manifests) && identical(a.Awaited, b.Awaited) && a.Equal(b)
}

func (b *board) apply(edits map[string][]edit) {
	if len(edits) == 0 {
		return
	}
	lists := maps.Clone(b.lists)
	if lists == nil {
		lists = map[string][]work.Work{}
	}
	for cluster, es := range edits {
		slices.SortFunc(es, func(a, b edit) int { return compareKeys(a.key, b.key) })
		if lists[cluster] = edited(lists[cluster], es); len(lists[cluster]) == 0 {
			delete(lists, cluster)
		}
	}
	b.lists = lists
}

// edited merges edits into a list; both are by placement.
func edited(list []work.Work, edits []edit) []work.Work {
	out := make([]work.Work, 0, len(list)+len(edits))
	for _, e := range edits {
		for len(list) > 0 && compareKeys(list[0].Placement, e.key) < 0 {
			out, list = append(out, list[0]), list[1:]
		}
		if len(list) > 0 && list[0].Placement == e.key {
			list = list[1:]
		}
		if e.work != nil {
			out = append(out, *e.work)
		}
	}
	return append(out, list...)
}
