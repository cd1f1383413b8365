package work

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Idle names the overrides bound to the placement that change nothing, as none
// of their rules is for any of the clusters: those the placement holds.
func (r *Renderer) Idle(clusters []placement.Cluster) []string {
	var warnings []string
	for i := range r.candidates {
		c := &r.candidates[i]
		if c.ref == nil || c.matchesAny(clusters) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s has no rule for any cluster the placement holds", c.source))
	}
	return warnings
}

func (c *candidate) matchesAny(clusters []placement.Cluster) bool {
	return slices.ContainsFunc(clusters, func(cluster placement.Cluster) bool {
		for i := range c.rules {
			if c.rules[i].matches(cluster) {
				return true
			}
		}
		return false
	})
}

// Unused names the overrides that no placement has to do with. The renderers
// are those of all placements; what is bound to one of them and misses is among
// its own warnings.
func Unused(cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride, renderers []*Renderer) []string {
	used := map[api.NamespacedName]bool{}
	placements := map[api.PlacementKey]bool{}
	for _, r := range renderers {
		placements[r.key] = true
		for i := range r.candidates {
			used[r.candidates[i].id()] = true
		}
	}
	var warnings []string
	for _, s := range sources(cros, ros, func(s source) bool { return !used[s.id()] }) {
		switch key := s.target(); {
		case s.ref == nil:
			warnings = append(warnings, fmt.Sprintf("%s selects nothing that any placement holds", s))
		case !placements[key]:
			warnings = append(warnings, fmt.Sprintf("%s is for the placement %s, which does not exist", s, key))
		}
	}
	return warnings
}

func (s source) id() api.NamespacedName {
	return api.NamespacedName{Namespace: s.namespace, Name: s.name}
}
