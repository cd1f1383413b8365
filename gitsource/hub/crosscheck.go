package hub

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// overrides reports objects that two overrides of a namespace select, and too many overrides.
func (a *assembly) overrides() {
	type target struct {
		namespace string
		api.ResourceSelector
	}
	type use struct {
		it    *item
		field string
	}
	uses := map[target][]use{}
	count := map[string]int{}
	for _, it := range a.items {
		var field, limit string
		var selectors []api.ResourceSelector
		switch {
		case it.clusterOverride != nil:
			field, selectors = "clusterResourceSelectors", validation.ClusterSelectors(it.clusterOverride.ClusterResourceOverride)
			limit = "clusterResourceOverride limit has been reached: at most 100 cluster resources can be created in KubeFleet"
		case it.override != nil:
			field, selectors = "resourceSelectors", it.override.Spec.ResourceSelectors
			limit = "resourceOverride limit has been reached: at most 100 resources can be created in KubeFleet"
		default:
			continue
		}
		if count[it.id.Namespace]++; count[it.id.Namespace] == 101 {
			a.problem(problem.Warning, it.origin, "", "%s", limit)
		}
		for i, s := range selectors {
			t := target{it.id.Namespace, s}
			uses[t] = append(uses[t], use{it, fmt.Sprintf("spec.%s[%d]", field, i)})
		}
	}
	for t, all := range uses {
		for _, u := range all {
			other := all[0].it
			if u == all[0] {
				other = all[min(1, len(all)-1)].it
			}
			if u.it != other { // if one override selects the target twice, that is reported elsewhere
				a.problem(problem.Error, u.it.at(u.field), u.field,
					"invalid resource selector %s: the resource has been selected by both %s and %s (%s), which is not supported; select it in one of them",
					validation.SelectorText(t.ResourceSelector), u.it.id.Name, other.id.Name, positionText(other.origin))
			}
		}
	}
}

// references warns of references to names that the commit does not have, which are usually
// misspelt.
func (a *assembly) references() {
	placements, clusters := map[api.PlacementKey]bool{}, map[string]bool{}
	for _, it := range a.items {
		switch {
		case it.placement != nil:
			placements[it.placement.Key] = true
		case it.cluster != nil:
			clusters[it.id.Name] = true
		}
	}
	names := slices.Sorted(maps.Keys(clusters))
	for _, it := range a.items {
		switch {
		case it.placement != nil:
			a.placementReferences(it, placements, names)
		case it.clusterOverride != nil:
			a.overrideReference(it, it.clusterOverride.Spec.Placement, placements)
		case it.override != nil:
			a.overrideReference(it, it.override.Spec.Placement, placements)
		}
	}
}

func (a *assembly) placementReferences(it *item, placements map[api.PlacementKey]bool, clusters []string) {
	policy := it.placement.Spec.Policy
	for i, name := range policy.ClusterNames {
		if _, found := slices.BinarySearch(clusters, name); found {
			continue
		}
		field, hint := fmt.Sprintf("spec.policy.clusterNames[%d]", i), "add it, or remove the name"
		if near := api.Closest(name, clusters); near != "" {
			hint = "did you mean " + near + "?"
		}
		a.problem(problem.Warning, it.at(field), field, "the commit has no MemberCluster %s, so it is not chosen; %s", name, hint)
	}
	check := func(field string, references []api.PlacementReference) {
		for i, ref := range references {
			key := api.PlacementKey{Namespace: it.id.Namespace, Name: ref.Name}
			if !placements[key] {
				a.problem(problem.Warning, it.origin, fmt.Sprintf("spec.policy.affinity.%s[%d].name", field, i), "the commit has no %s %s", key.Kind(), ref.Name)
			}
		}
	}
	if policy.Affinity != nil {
		check("placementAffinity", policy.Affinity.PlacementAffinity)
		check("placementAntiAffinity", policy.Affinity.PlacementAntiAffinity)
	}
}

func (a *assembly) overrideReference(it *item, ref *api.PlacementRef, placements map[api.PlacementKey]bool) {
	if ref == nil {
		return
	}
	key := api.PlacementKey{Name: ref.Name}
	if ref.Scope == api.NamespaceScoped {
		key.Namespace = it.id.Namespace
	}
	if !placements[key] {
		a.problem(problem.Warning, it.at(validation.PlacementField), validation.PlacementField, "the commit has no %s %s, so this override has no effect", key.Kind(), ref.Name)
	}
}
