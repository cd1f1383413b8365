package hub

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/placement/window"
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

// budgets reports budgets that their placements do not allow.
func (a *assembly) budgets() {
	placements := map[string]*Placement{}
	for _, it := range a.items {
		if it.placement != nil && it.id.Namespace == "" {
			placements[it.id.Name] = it.placement
		}
	}
	for _, it := range a.items {
		switch {
		case it.budget != nil && placements[it.id.Name] == nil:
			a.problem(problem.Warning, it.origin, "metadata.name", "the commit has no ClusterResourcePlacement %s, so this budget has no effect; %s", it.id.Name,
				suggest(it.id.Name, maps.Keys(placements), "give it the name of one"))
		case it.budget != nil:
			if field, fault := validation.BudgetFault(&it.budget.Spec, placements[it.id.Name].Spec.Policy); fault != "" {
				a.problem(problem.Error, it.at("spec."+field), "spec."+field, "%s; write a number for minAvailable", fault)
			}
		case it.eviction != nil && placements[it.eviction.Spec.PlacementName] == nil:
			a.problem(problem.Warning, it.at("spec.placementName"), "spec.placementName", "Failed to find ClusterResourcePlacement targeted by eviction: the commit has no %s; %s", it.eviction.Spec.PlacementName,
				suggest(it.eviction.Spec.PlacementName, maps.Keys(placements), "remove the eviction, or correct the name"))
		}
	}
}

// windows reports windows that have no effect, or are never open together.
func (a *assembly) windows() {
	var all []*window.Window
	var fleet window.Fleet
	items := map[*window.Window]*item{}
	for _, it := range a.items {
		switch {
		case it.window != nil:
			all = append(all, it.window.Compiled)
			items[it.window.Compiled] = it
		case it.placement != nil:
			fleet.Placements = append(fleet.Placements, window.Labelled{Name: it.placement.Key.String(), Labels: it.placement.Labels})
		case it.cluster != nil:
			fleet.Clusters = append(fleet.Clusters, window.Labelled{Name: it.id.Name, Labels: it.cluster.Labels})
		}
	}
	for _, p := range window.Check(all, fleet) {
		field, severity := "spec", problem.Error
		if p.Field != "" {
			field += "." + p.Field
		}
		if p.Warning {
			severity = problem.Warning
		}
		a.problem(severity, items[p.Window].at(field), field, "%s", p.Message)
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

// suggest returns how to correct a name that the commit does not have: the nearest of the known names, or else a fix.
func suggest(name string, known iter.Seq[string], fix string) string {
	return api.Suggest(name, slices.Sorted(known), fix)
}

// namesIn yields the names of keys in a namespace. split returns the namespace and the name of a key.
func namesIn[K comparable, V any](all map[K]V, namespace string, split func(K) (string, string)) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range all {
			if in, name := split(key); in == namespace && !yield(name) {
				return
			}
		}
	}
}

func ofPlacement(k api.PlacementKey) (namespace, name string) { return k.Namespace, k.Name }

func (a *assembly) placementReferences(it *item, placements map[api.PlacementKey]bool, clusters []string) {
	policy := it.placement.Spec.Policy
	for i, name := range policy.ClusterNames {
		if _, found := slices.BinarySearch(clusters, name); found {
			continue
		}
		field := fmt.Sprintf("spec.policy.clusterNames[%d]", i)
		a.problem(problem.Warning, it.at(field), field, "the commit has no MemberCluster %s, so it is not chosen; %s", name, suggest(name, slices.Values(clusters), "add it, or remove the name"))
	}
	check := func(field string, references []api.PlacementReference) {
		for i, ref := range references {
			key := api.PlacementKey{Namespace: it.id.Namespace, Name: ref.Name}
			if !placements[key] {
				field := fmt.Sprintf("spec.policy.affinity.%s[%d].name", field, i)
				a.problem(problem.Warning, it.at(field), field, "the commit has no %s %s; %s", key.Kind(), ref.Name, suggest(ref.Name, namesIn(placements, key.Namespace, ofPlacement), "add it, or correct the name"))
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
		a.problem(problem.Warning, it.at(validation.PlacementField), validation.PlacementField, "the commit has no %s %s, so this override has no effect; %s", key.Kind(), ref.Name,
			suggest(ref.Name, namesIn(placements, key.Namespace, ofPlacement), "remove it, or correct the name"))
	}
}

// scaledObjects warns of objects that set replicas although an autoscaler of the commit does.
func (a *assembly) scaledObjects() {
	scalers := map[api.ID]*item{}
	for _, it := range a.items {
		if it.object == nil || !controllers.IsAutoscaler(it.id.GroupKind()) {
			continue
		}
		if target, ok := controllers.Scales(it.object.Content); ok {
			scalers[target] = it
		}
	}
	if len(scalers) == 0 {
		return
	}
	for _, it := range a.items {
		if by, scaled := scalers[it.id]; scaled && it.object != nil && setsReplicas(it.object.Content) {
			a.problem(problem.Warning, it.at(replicasField), replicasField,
				"the %s %s (%s) sets the replicas, so the value in Git is only used to create the object; remove it", by.id.Kind, by.id.Name, positionText(by.origin))
		}
	}
}

// setsReplicas reports whether an object sets its replicas and does not leave them to others.
func setsReplicas(o *unstructured.Unstructured) bool {
	_, sets, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	ignored, _ := api.Pointers(o.GetAnnotations()[api.IgnoreFieldsAnnotation])
	for _, p := range ignored {
		sets = sets && p != "/spec" && p != "/spec/replicas"
	}
	return sets
}
