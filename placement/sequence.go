package placement

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Sequence returns the order in which placements are to be decided, so that
// each comes after those its placementAffinity and placementAntiAffinity name.
// Otherwise they are in order of their keys.
//
// Of placements that look at each other in a circle the first by key is decided
// first, by what the others hold from the last turn. So give [Request.Others]
// the answer of this turn where there is one, and the bindings of the last
// where there is not. Two that avoid each other then settle at once; two that
// follow each other go nowhere until one of them holds something.
func Sequence(policies map[api.PlacementKey]*api.PlacementPolicy) []api.PlacementKey {
	keys := make([]api.PlacementKey, 0, len(policies))
	for key := range policies {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)

	order := make([]api.PlacementKey, 0, len(keys))
	seen := make(map[api.PlacementKey]bool, len(keys))
	var visit func(api.PlacementKey)
	visit = func(key api.PlacementKey) {
		policy, exists := policies[key]
		if !exists || seen[key] {
			return
		}
		seen[key] = true
		for _, name := range LooksAt(policy) {
			visit(api.PlacementKey{Namespace: key.Namespace, Name: name})
		}
		order = append(order, key)
	}
	for _, key := range keys {
		visit(key)
	}
	return order
}

func compareKeys(a, b api.PlacementKey) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// LooksAt returns the names of the other placements that a policy refers to, in
// order, each once: those that [Request.Others] is to tell of. They are of the
// same kind and, for a ResourcePlacement, of the same namespace.
func LooksAt(p *api.PlacementPolicy) []string {
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
