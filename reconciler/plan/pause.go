package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// While it is not known what one placement holds on a cluster, because the
// commit that brought it is still being read, nothing moves there: what one
// gives up may be what another is to have, and must not be deleted in between.
// That takes as long as reading a commit. One that cannot be read holds up
// nobody.

// pause finds the clusters on which nothing may move, and thinks again about
// the placements that would have moved something there.
func (t *thinker) pause(keys []api.PlacementKey) {
	now := t.unread()
	for cluster := range now {
		if t.paused[cluster] != now[cluster] {
			t.flipped = append(t.flipped, cluster)
		}
	}
	for cluster := range t.paused {
		if now[cluster] == "" {
			t.flipped = append(t.flipped, cluster)
		}
	}
	if len(t.flipped) == 0 {
		return
	}
	slices.Sort(t.flipped)
	t.paused, t.memo.paused = now, now
	for _, key := range keys {
		if t.thoughts[key].concerns(t.flipped) {
			t.placement(key)
		}
	}
}

// unread are the clusters of which it is not known what they hold, each with a
// commit that is still being read.
func (t *thinker) unread() map[string]string {
	out := map[string]string{}
	for _, th := range t.thoughts {
		if len(th.awaited) == 0 {
			continue
		}
		for _, c := range th.p.Clusters {
			if !c.unread {
				continue
			}
			commit, known := c.Entry.Binding.Assigned.Commit, out[c.Binding.Cluster]
			if known == "" || commit < known {
				out[c.Binding.Cluster] = commit
			}
		}
	}
	return out
}

// waits reports whether something would move on the cluster, and may not.
func (t *thinker) waits(c *OnCluster) bool {
	return t.paused[c.Binding.Cluster] != "" && !c.Binding.Removing && (!c.UpToDate() || c.Binding.Unscheduled)
}
