package placement

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Sequence returns the order in which placements are scheduled: each comes after those that its
// placementAffinity and placementAntiAffinity name, and otherwise they are sorted by key.
//
// If placements name each other in a cycle, the first by key is scheduled first, with the
// clusters that the others held in the last turn. So [Request.Others] has the results of this
// turn where there are some, and the recorded bindings otherwise. Two placements with mutual
// anti-affinity are then stable at once. Two with mutual affinity are not scheduled until one
// of them holds a cluster.
func Sequence(policies map[api.PlacementKey]*api.PlacementPolicy) []api.PlacementKey {
	keys := make([]api.PlacementKey, 0, len(policies))
	for key := range policies {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, api.PlacementKey.Compare)

	order := make([]api.PlacementKey, 0, len(keys))
	seen := make(map[api.PlacementKey]bool, len(keys))
	var visit func(api.PlacementKey)
	visit = func(key api.PlacementKey) {
		policy, exists := policies[key]
		if !exists || seen[key] {
			return
		}
		seen[key] = true
		for _, name := range ReferencedPlacements(policy) {
			visit(api.PlacementKey{Namespace: key.Namespace, Name: name})
		}
		order = append(order, key)
	}
	for _, key := range keys {
		visit(key)
	}
	return order
}

// ReferencedPlacements returns the names of the other placements that a policy names, in order,
// each once: those that [Request.Others] must have. They are of the same kind and, for a
// ResourcePlacement, of the same namespace.
func ReferencedPlacements(p *api.PlacementPolicy) []string {
	if p == nil || p.Affinity == nil {
		return nil
	}
	var names []string
	for _, refs := range [][]api.PlacementReference{p.Affinity.PlacementAffinity, p.Affinity.PlacementAntiAffinity} {
		for _, ref := range refs {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
