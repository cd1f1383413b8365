package work

import (
	"iter"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Idle returns the overrides bound to the placement that have no rule for any of the clusters,
// which are those the placement holds. Without clusters it returns nothing. A
// ClusterResourceOverride has no namespace.
func (r *Renderer) Idle(clusters iter.Seq[placement.Cluster]) []api.NamespacedName {
	var idle []api.NamespacedName
	for i := range r.whole.candidates {
		if c := &r.whole.candidates[i]; c.ref != nil && c.matchesNone(clusters) {
			idle = append(idle, c.id())
		}
	}
	return idle
}

// matchesNone reports whether there are clusters and no rule matches any of them.
func (c *candidate) matchesNone(clusters iter.Seq[placement.Cluster]) bool {
	some := false
	for cluster := range clusters {
		some = true
		if slices.ContainsFunc(c.rules, func(r rule) bool { return r.matches(cluster) }) {
			return false
		}
	}
	return some
}

// Unused returns the overrides that are bound to no placement and select nothing of any. The
// renderers are those of all placements. A ClusterResourceOverride has no namespace.
func Unused(cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, renderers []*Renderer) []api.NamespacedName {
	used := map[api.NamespacedName]bool{}
	for _, r := range renderers {
		for i := range r.whole.candidates {
			used[r.whole.candidates[i].id()] = true
		}
	}
	var unused []api.NamespacedName
	for _, s := range sources(cros, ros, func(s source) bool { return s.ref == nil && !used[s.id()] }) {
		unused = append(unused, s.id())
	}
	return unused
}
