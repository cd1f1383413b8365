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

// pin replaces the lists of the clusters that are concerned when some thoughts
// are not what they were. It returns the placements whose thoughts they are.
func (b *board) pin(before, after map[api.PlacementKey]*thought) map[api.PlacementKey]bool {
	changed := map[api.PlacementKey]bool{}
	news := map[string][]work.Work{}
	for key, th := range after {
		if before[key] == th {
			continue
		}
		changed[key] = true
		for _, a := range th.works {
			news[a.cluster] = append(news[a.cluster], a.work)
		}
	}
	for key, th := range before {
		if after[key] == th {
			continue
		}
		changed[key] = true
		for _, a := range th.works {
			if _, touched := news[a.cluster]; !touched {
				news[a.cluster] = nil // something of it may go
			}
		}
	}
	b.replace(changed, news)
	return changed
}

func (b *board) replace(changed map[api.PlacementKey]bool, news map[string][]work.Work) {
	if len(news) == 0 {
		return
	}
	lists := maps.Clone(b.lists)
	if lists == nil {
		lists = map[string][]work.Work{}
	}
	for cluster, list := range news {
		for _, w := range lists[cluster] {
			if !changed[w.Placement] {
				list = append(list, w)
			}
		}
		slices.SortFunc(list, func(a, b work.Work) int { return compareKeys(a.Placement, b.Placement) })
		if lists[cluster] = list; len(list) == 0 {
			delete(lists, cluster)
		}
	}
	b.lists = lists
}
