package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// While a commit to which a cluster is assigned is being loaded, the content of the cluster is not known, and no
// assignment there changes: an object that one placement gives up may be one that another is about to get, and must not
// be deleted in between. The cluster is paused until the commit is loaded. A commit that cannot be loaded pauses
// nothing.

// pauseClusters finds the clusters to pause, and plans the placements again that are on clusters whose pause has begun
// or ended.
func (pl *planner) pauseClusters(keys []api.PlacementKey) {
	now := pl.clustersLoading()
	changed := maps.Clone(now)
	maps.Copy(changed, pl.paused)
	maps.DeleteFunc(changed, func(cluster, _ string) bool { return now[cluster] == pl.paused[cluster] })
	if len(changed) == 0 {
		return
	}
	pl.pauseChanged = slices.Sorted(maps.Keys(changed))
	pl.paused, pl.memo.paused = now, now
	for _, key := range keys {
		if pl.results[key].onAnyOf(pl.pauseChanged) {
			pl.planPlacement(key)
		}
	}
}

// clustersLoading returns the clusters whose held content is not known, each with a commit that is being loaded.
func (pl *planner) clustersLoading() map[string]string {
	out := map[string]string{}
	for _, r := range pl.results {
		if len(r.missing) == 0 {
			continue
		}
		for _, c := range r.placement.Clusters {
			known := out[c.Binding.Cluster]
			if c.loading != "" && (known == "" || c.loading < known) {
				out[c.Binding.Cluster] = c.loading
			}
		}
	}
	return out
}

// isPaused reports whether an assignment would change on the cluster and may not.
func (pl *planner) isPaused(c *OnCluster) bool {
	return pl.paused[c.Binding.Cluster] != "" && !c.Binding.Removing && (!c.UpToDate() || c.Binding.Unscheduled)
}
