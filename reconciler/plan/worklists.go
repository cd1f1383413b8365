package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// workLists has the works of each cluster, by placement. A list is never changed, only
// replaced, so that an unchanged list need not be compared.
type workLists struct {
	lists map[string][]work.Work
}

// An edit replaces the work of one placement in a list.
type edit struct {
	key  api.PlacementKey
	work *work.Work // nil deletes it
}

// update updates the lists after some results have changed, and returns the placements of those
// results.
func (l *workLists) update(before, after map[api.PlacementKey]*result) map[api.PlacementKey]bool {
	changed := map[api.PlacementKey]bool{}
	edits := map[string][]edit{}
	for key, th := range after {
		if old := before[key]; old != th {
			changed[key] = true
			diffResults(key, old, th, edits)
		}
	}
	for key, old := range before {
		if after[key] == nil {
			changed[key] = true
			diffResults(key, old, nil, edits)
		}
	}
	l.apply(edits)
	return changed
}

// diffResults lists the clusters on which two results for a placement differ. Works of a result
// are sorted by cluster.
func diffResults(key api.PlacementKey, old, now *result, edits map[string][]edit) {
	var was, is []clusterWork
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
	return a.Revision == b.Revision && a.Strategy == b.Strategy && ledger.Identical(a.Manifests, b.Manifests) && ledger.Identical(a.Awaited, b.Awaited) && a.Equal(b)
}

func (l *workLists) apply(edits map[string][]edit) {
	if len(edits) == 0 {
		return
	}
	lists := maps.Clone(l.lists)
	if lists == nil {
		lists = map[string][]work.Work{}
	}
	for cluster, es := range edits {
		slices.SortFunc(es, func(a, b edit) int { return a.key.Compare(b.key) })
		if lists[cluster] = applyEdits(lists[cluster], es); len(lists[cluster]) == 0 {
			delete(lists, cluster)
		}
	}
	l.lists = lists
}

// applyEdits merges edits into a list; both are sorted by placement.
func applyEdits(list []work.Work, edits []edit) []work.Work {
	out := make([]work.Work, 0, len(list)+len(edits))
	for _, e := range edits {
		for len(list) > 0 && list[0].Placement.Compare(e.key) < 0 {
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
