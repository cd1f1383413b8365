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
	var order []overrideTarget
	count := map[string]int{}
	for _, it := range a.items {
		if it.clusterOverride == nil && it.override == nil {
			continue
		}
		count[it.id.Namespace]++
		a.overrideLimit(it, count[it.id.Namespace])
		for i, s := range it.selectors() {
			t := overrideTarget{it.id.Namespace, s}
			if uses[t] == nil {
				order = append(order, t)
			}
			uses[t] = append(uses[t], overrideUse{it, fmt.Sprintf("spec.%s[%d]", it.selectorField(), i)})
		}
	}
	for _, t := range order {
		for i, u := range uses[t] {
			if other := uses[t][min(1, len(uses[t])-1)]; i == 0 {
				a.overrideConflict(t, u, other)
			} else {
				a.overrideConflict(t, u, uses[t][0])
			}
		}
	}
}

func (a *assembly) overrideConflict(t overrideTarget, u, other overrideUse) {
	if u.it == other.it {
		return // the same override; if it selects the target twice, that is reported elsewhere
	}
	a.problem(problem.Error, u.it.at(u.field), u.field,
		"invalid resource selector %s: the resource has been selected by both %s and %s (%s), which is not supported; select it in one of them",
		validation.SelectorText(t.ResourceSelector), u.it.id.Name, other.it.id.Name, positionText(other.it.origin))
}

func (it *item) selectors() []api.ResourceSelector {
	if it.override != nil {
		return it.override.Spec.ResourceSelectors
	}
	var out []api.ResourceSelector
	for _, s := range it.clusterOverride.Spec.ClusterResourceSelectors {
		out = append(out, api.ResourceSelector{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	return out
}

func (it *item) selectorField() string {
	if it.clusterOverride != nil {
		return "clusterResourceSelectors"
	}
	return "resourceSelectors"
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
