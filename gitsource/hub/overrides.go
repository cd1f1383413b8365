package hub

import (
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// boundTo is the field path of an override's placement.
const boundTo = "spec.placement.name"

func checkClusterOverride(r *report, it *item, o *api.ClusterResourceOverride) {
	at := r.field("spec", "clusterResourceSelectors")
	count(r, at, len(o.Spec.ClusterResourceSelectors), 1, 20)
	if p := o.Spec.Placement; p != nil && p.Scope == api.NamespaceScoped {
		r.rulef(r.field("spec", "placement", "scope"), "clusterResourceOverride placement reference cannot be Namespaced scope; remove it")
	}
	var names []api.ResourceSelector
	for i, s := range o.Spec.ClusterResourceSelectors {
		if s.LabelSelector != nil {
			r.rulef(at.at(i).child("labelSelector"), "label selector is not supported for resource selection; write a name")
		}
		if s.Name == "" {
			r.rulef(at.at(i).child("name"), "resource name is required for resource selection")
		}
		names = append(names, api.ResourceSelector{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	it.recordLine(r, r.field("spec", "placement", "name"))
	checkSelectors(r, it, at, names)
	checkRules(r, o.Spec.Policy)
}

func checkOverride(r *report, it *item, o *api.ResourceOverride) {
	at := r.field("spec", "resourceSelectors")
	count(r, at, len(o.Spec.ResourceSelectors), 1, 20)
	for i, s := range o.Spec.ResourceSelectors {
		notEmpty(r, at.at(i).child("name"), s.Name)
	}
	it.recordLine(r, r.field("spec", "placement", "name"))
	checkSelectors(r, it, at, o.Spec.ResourceSelectors)
	checkRules(r, o.Spec.Policy)
}

func checkSelectors(r *report, it *item, at *fieldPath, selectors []api.ResourceSelector) {
	seen := map[api.ResourceSelector]bool{}
	for i, s := range selectors {
		notEmpty(r, at.at(i).child("kind"), s.Kind)
		notEmpty(r, at.at(i).child("version"), s.Version)
		if seen[s] {
			r.rulef(at.at(i), "resource selector %s already exists, and must be unique; remove it", selectorText(s))
		}
		seen[s] = true
		it.recordLine(r, at.at(i))
	}
}

// selectorText describes a selector.
func selectorText(s api.ResourceSelector) string {
	return strings.TrimPrefix(s.Group+"/"+s.Version, "/") + " " + s.Kind + " " + s.Name
}

func checkRules(r *report, policy *api.OverridePolicy) {
	if policy == nil {
		return // reported elsewhere: missing
	}
	p := r.field("spec", "policy", "overrideRules")
	count(r, p, len(policy.OverrideRules), 1, 20)
	for i, rule := range policy.OverrideRules {
		checkClusterSelector(r, p.at(i).child("clusterSelector"), rule.ClusterSelector)
		checkPatches(r, p.at(i).child("jsonPatchOverrides"), rule)
	}
}

func checkClusterSelector(r *report, p *fieldPath, s *api.ClusterSelector) {
	if s == nil {
		r.warnf(p, "missing, so this rule applies to no cluster; write clusterSelector: {clusterSelectorTerms: []} for every cluster")
		return
	}
	p = p.child("clusterSelectorTerms")
	count(r, p, len(s.ClusterSelectorTerms), 0, 10)
	for i, term := range s.ClusterSelectorTerms {
		if term.PropertySelector != nil || term.PropertySorter != nil {
			r.rulef(p.at(i), "invalid clusterSelector: only labelSelector is supported")
		}
		if term.LabelSelector == nil {
			r.rulef(p.at(i), "invalid clusterSelector: labelSelector is required")
		}
		checkLabelSelector(r, p.at(i).child("labelSelector"), term.LabelSelector, "invalid clusterSelector")
	}
}

func checkPatches(r *report, p *fieldPath, rule api.OverrideRule) {
	patches := rule.JSONPatchOverrides
	if rule.OverrideType == api.DeleteOverrideType {
		if len(patches) > 0 {
			r.rulef(p, "invalid JSONPatchOverrides: JSONPatchOverrides cannot be set when the override type is Delete; remove them")
		}
		return
	}
	if len(patches) == 0 {
		r.rulef(p, "invalid JSONPatchOverrides: JSONPatchOverrides cannot be empty; write at least one patch")
		return
	}
	count(r, p, len(patches), 1, 20)
	for i, patch := range patches {
		if patch.Operator == api.JSONPatchRemove && len(patch.Value) > 0 && string(patch.Value) != "null" {
			r.rulef(p.at(i).child("value"), "invalid JSONPatchOverride %s: remove operation cannot have value; leave it out", patch.Path)
		}
		if msg := patchPathFault(patch.Path); msg != "" {
			r.rulef(p.at(i).child("path"), "invalid JSONPatchOverride %s: %s", patch.Path, msg)
		}
	}
}

// patchPathFault returns why an override may not change a path; empty if it may.
func patchPathFault(path string) string {
	if path == "" {
		return "path cannot be empty"
	}
	if path[0] != '/' {
		return "path must start with /"
	}
	segments := strings.Split(path[1:], "/")
	switch first := segments[0]; {
	case first == "kind" || first == "apiVersion":
		return "cannot override typeMeta fields"
	case first == "metadata" && len(segments) == 1:
		return "cannot override field metadata"
	case first == "metadata" && segments[1] != "annotations" && segments[1] != "labels":
		return "cannot override metadata fields except annotations and labels"
	case first == "status":
		return "cannot override status fields"
	}
	for _, s := range segments {
		if strings.TrimSpace(s) == "" {
			return "path cannot contain empty string"
		}
	}
	return ""
}
