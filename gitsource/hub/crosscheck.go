package hub

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An overrideTarget is the target that one override selects; two overrides must not select the
// same.
type overrideTarget struct {
	namespace string // namespace of the override; empty for a ClusterResourceOverride
	api.ResourceSelector
}

type overrideUse struct {
	it    *item
	field string
}

// overrides reports objects that two overrides select, and too many overrides.
func (a *assembly) overrides() {
	uses := map[overrideTarget][]overrideUse{}
	count := map[string]int{}
	for _, it := range a.items {
		if it.clusterOverride == nil && it.override == nil {
			continue
		}
		count[it.id.Namespace]++
		a.overrideLimit(it, count[it.id.Namespace])
		field, selectors := it.selectors()
		for i, s := range selectors {
			t := overrideTarget{it.id.Namespace, s}
			uses[t] = append(uses[t], overrideUse{it, fmt.Sprintf("spec.%s[%d]", field, i)})
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

// selectors returns the selectors of an override, and the name of their field.
func (it *item) selectors() (field string, selectors []api.ResourceSelector) {
	if it.override != nil {
		return "resourceSelectors", it.override.Spec.ResourceSelectors
	}
	return "clusterResourceSelectors", validation.ClusterSelectors(it.clusterOverride.ClusterResourceOverride)
}

// overrideLimit warns once if there are more overrides than KubeFleet allows.
func (a *assembly) overrideLimit(it *item, n int) {
	switch {
	case n != 101:
	case it.clusterOverride != nil:
		a.problem(problem.Warning, it.origin, "", "clusterResourceOverride limit has been reached: at most 100 cluster resources can be created in KubeFleet")
	default:
		a.problem(problem.Warning, it.origin, "", "resourceOverride limit has been reached: at most 100 resources can be created in KubeFleet")
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
	for _, it := range a.items {
		switch {
		case it.placement != nil:
			a.placementReferences(it, placements, clusters)
		case it.clusterOverride != nil:
			a.overrideReference(it, it.clusterOverride.Spec.Placement, placements)
		case it.override != nil:
			a.overrideReference(it, it.override.Spec.Placement, placements)
		}
	}
}

func (a *assembly) placementReferences(it *item, placements map[api.PlacementKey]bool, clusters map[string]bool) {
	policy := it.placement.Spec.Policy
	for i, name := range policy.ClusterNames {
		field := fmt.Sprintf("spec.policy.clusterNames[%d]", i)
		if clusters[name] {
			continue
		}
		hint := "add it, or remove the name"
		if near := api.Closest(name, slices.Sorted(maps.Keys(clusters))); near != "" {
			hint = "did you mean " + near + "?"
		}
		a.problem(problem.Warning, it.at(field), field, "the commit has no MemberCluster %s, so it is not chosen; %s", name, hint)
	}
	if policy.Affinity == nil {
		return
	}
	a.affinityReferences(it, "placementAffinity", policy.Affinity.PlacementAffinity, placements)
	a.affinityReferences(it, "placementAntiAffinity", policy.Affinity.PlacementAntiAffinity, placements)
}

func (a *assembly) affinityReferences(it *item, field string, references []api.PlacementReference, placements map[api.PlacementKey]bool) {
	for i, ref := range references {
		key := api.PlacementKey{Namespace: it.id.Namespace, Name: ref.Name}
		if !placements[key] {
			a.problem(problem.Warning, it.origin, fmt.Sprintf("spec.policy.affinity.%s[%d].name", field, i), "the commit has no %s %s", key.Kind(), ref.Name)
		}
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
