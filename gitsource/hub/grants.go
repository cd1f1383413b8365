package hub

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/placement/api"
)

// checkGrants reports what files produce or select that is not granted to them. The files of a build
// produce its objects together.
func (a *assembly) checkGrants(scopes map[api.GroupKind]bool) {
	if a.grants == nil {
		return
	}
	products := map[string][]grant.Product{}
	for _, it := range a.items {
		file := it.origin.Path
		if it.built() {
			file = it.origin.Kustomization
		}
		products[file] = append(append(products[file], it.products(scopes)...), it.placementsOfOthers(a.items)...)
	}
	for _, file := range slices.Sorted(maps.Keys(products)) {
		files := a.sources[file]
		if files == nil {
			files = []string{file}
		}
		a.problems = append(a.problems, a.grants.Check(files, products[file])...)
	}
}

// placementsOfOthers are the placements, also of others, on which an item has an effect, among all items: whose content a staged run or
// an approval request rolls out, from which an eviction evicts, or whose evictions a disruption budget limits.
func (it *item) placementsOfOthers(items []*item) (all []grant.Product) {
	add := func(by grant.Selector, name, field string) {
		key := api.PlacementKey{Namespace: it.id.Namespace, Name: name}
		id := api.ID{Group: api.PlacementGroup, Kind: key.Kind(), Namespace: key.Namespace, Name: key.Name}
		all = append(all, grant.Product{ID: id, Namespaced: key.Namespace != "", Origin: it.at(field), Field: field, By: by})
	}
	switch {
	case it.run != nil:
		add(grant.ByRun, it.run.PlacementName, "spec.placementName")
	case it.eviction != nil:
		add(grant.ByEviction, it.eviction.Spec.PlacementName, "spec.placementName")
	case it.budget != nil:
		add(grant.ByBudget, it.id.Name, "metadata.name")
	}
	if it.approval == nil {
		return all
	}
	for _, other := range items {
		if other.run != nil && other.id.Namespace == it.id.Namespace && other.id.Name == it.approval.Run {
			add(grant.ByRun, other.run.PlacementName, "spec.parentStageRollout")
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, other := range items {
		if p := other.placement; p != nil && p.Key.Namespace == it.id.Namespace && p.Annotations[api.StagedUpdateStrategyAnnotation] != "" {
			add(grant.ByRun, p.Key.Name, "spec.parentStageRollout") // it may have made the run by itself
		}
	}
	return all
}

// products are the item itself, the objects in it, and those that it selects.
func (it *item) products(scopes map[api.GroupKind]bool) []grant.Product {
	all := []grant.Product{{ID: it.id, Namespaced: isNamespaced(it.id, scopes), Origin: it.origin}}
	for _, w := range it.wrapped {
		all = append(all, grant.Product{ID: w.id, Namespaced: isNamespaced(w.id, scopes), Origin: w.origin, Field: w.field, Unread: w.unread})
	}
	selected := func(by grant.Selector, field string, i int, id api.ID) {
		field = fmt.Sprintf("spec.%s[%d]", field, i)
		all = append(all, grant.Product{ID: id, Namespaced: isNamespaced(id, scopes), Origin: it.at(field), Field: field, By: by})
	}
	switch {
	case it.gate != nil && it.gate.Spec.Job != nil: // which runs there although no placement selects it
		const field = "spec.job.namespace"
		id := api.ID{Group: "batch", Kind: "Job", Namespace: it.gate.Spec.Job.Namespace, Name: it.id.Name}
		all = append(all, grant.Product{ID: id, Namespaced: true, Origin: it.at(field), Field: field})
	case it.placement != nil:
		for i, t := range it.placement.Spec.ResourceSelectors {
			selected(grant.ByPlacement, "resourceSelectors", i, api.ID{Group: t.Group, Kind: t.Kind, Namespace: it.id.Namespace, Name: t.Name})
		}
	case it.clusterOverride != nil:
		for i, t := range it.clusterOverride.Spec.ClusterResourceSelectors {
			selected(grant.ByOverride, "clusterResourceSelectors", i, api.ID{Group: t.Group, Kind: t.Kind, Name: t.Name})
		}
	case it.override != nil:
		for i, t := range it.override.Spec.ResourceSelectors {
			selected(grant.ByOverride, "resourceSelectors", i, api.ID{Group: t.Group, Kind: t.Kind, Namespace: it.id.Namespace, Name: t.Name})
		}
	}
	return all
}

// isNamespaced reports whether the kind of an object is known to be namespaced.
func isNamespaced(id api.ID, scopes map[api.GroupKind]bool) bool {
	namespaced, known := api.Namespaced(id.GroupKind())
	return known && namespaced || scopes[id.GroupKind()]
}

// readFor returns the file that has an overlay or a chart, or the kustomization that builds it, and all files that are read
// for it.
func (a *assembly) readFor(it *item) (file string, files []string) {
	if it.built() {
		return it.origin.Kustomization, a.sources[it.origin.Kustomization]
	}
	return it.origin.Path, []string{it.origin.Path}
}

// checkUnreadBy reports the paths of others of which an overlay decides that they are no part of the hub: that of its
// directory, unless it is shared, so that nothing in it is, and those below it.
func (a *assembly) checkUnreadBy(by, dir, kustomization string) {
	owner, shared := a.grants.Of(kustomization), a.grants.Shared(kustomization)
	if !shared {
		a.problems = append(a.problems, a.grants.CheckRead(by, dir)...)
		return
	}
	for _, g := range a.grants {
		if g != owner && grant.Below(dir, g.Path) {
			a.problems = append(a.problems, a.grants.CheckRead(by, g.Path)...)
		}
	}
}
