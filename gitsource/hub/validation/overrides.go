package validation

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// PlacementField is the path of the field in which an override names its placement.
const PlacementField = "spec.placement.name"

// CheckClusterOverride validates a ClusterResourceOverride whose defaults are set.
func CheckClusterOverride(r *document.Report, o *api.ClusterResourceOverride) {
	at := r.Field("spec", "clusterResourceSelectors")
	if p := o.Spec.Placement; p != nil && p.Scope == api.NamespaceScoped {
		r.Rulef(r.Field("spec", "placement", "scope"), "clusterResourceOverride placement reference cannot be Namespaced scope; remove it")
	}
	for i, s := range o.Spec.ClusterResourceSelectors {
		if s.LabelSelector != nil {
			r.Rulef(at.At(i).Child("labelSelector"), "label selector is not supported for resource selection; write a name")
		}
		if s.Name == "" {
			r.Rulef(at.At(i).Child("name"), "resource name is required for resource selection")
		}
	}
	checkOverride(r, at, ClusterSelectors(o), o.Spec.Policy)
}

// ClusterSelectors returns the selectors of a ClusterResourceOverride, all of which are by name.
func ClusterSelectors(o *api.ClusterResourceOverride) []api.ResourceSelector {
	var selectors []api.ResourceSelector
	for _, s := range o.Spec.ClusterResourceSelectors {
		selectors = append(selectors, api.ResourceSelector{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	return selectors
}

// CheckOverride validates a ResourceOverride whose defaults are set.
func CheckOverride(r *document.Report, o *api.ResourceOverride) {
	at := r.Field("spec", "resourceSelectors")
	for i, s := range o.Spec.ResourceSelectors {
		notEmpty(r, at.At(i).Child("name"), s.Name)
	}
	checkOverride(r, at, o.Spec.ResourceSelectors, o.Spec.Policy)
}

func checkOverride(r *document.Report, at *document.FieldPath, selectors []api.ResourceSelector, policy *api.OverridePolicy) {
	CheckLength(r, at, len(selectors), 1, 20)
	r.RecordLine(r.Field("spec", "placement", "name"))
	for i, s := range selectors {
		notEmpty(r, at.At(i).Child("kind"), s.Kind)
		notEmpty(r, at.At(i).Child("version"), s.Version)
		r.RecordLine(at.At(i))
	}
	eachRepeated(selectors, func(i int, s api.ResourceSelector) {
		r.Rulef(at.At(i), "resource selector %s already exists, and must be unique; remove it", SelectorText(s))
	})
	if policy == nil {
		return // a missing field is reported elsewhere
	}
	p := r.Field("spec", "policy", "overrideRules")
	CheckLength(r, p, len(policy.OverrideRules), 1, 20)
	r.RecordLine(p)
	for i, rule := range policy.OverrideRules {
		r.RecordLine(p.At(i).Child("clusterSelector"))
		r.RecordLine(p.At(i).Child("jsonPatchOverrides"))
		checkClusterSelector(r, p.At(i).Child("clusterSelector"), rule.ClusterSelector)
		checkPatches(r, p.At(i).Child("jsonPatchOverrides"), rule)
	}
}

// SelectorText describes a selector.
func SelectorText(s api.ResourceSelector) string {
	return strings.TrimPrefix(s.Group+"/"+s.Version, "/") + " " + s.Kind + " " + s.Name
}

func checkClusterSelector(r *document.Report, p *document.FieldPath, s *api.ClusterSelector) {
	if s == nil {
		r.Warnf(p, "missing, so this rule applies to no cluster; write clusterSelector: {clusterSelectorTerms: []} for every cluster")
		return
	}
	p = p.Child("clusterSelectorTerms")
	CheckLength(r, p, len(s.ClusterSelectorTerms), 0, 10)
	for i, term := range s.ClusterSelectorTerms {
		if term.PropertySelector != nil || term.PropertySorter != nil {
			r.Rulef(p.At(i), "invalid clusterSelector: only labelSelector is supported")
		}
		if term.LabelSelector == nil {
			r.Rulef(p.At(i), "invalid clusterSelector: labelSelector is required")
		}
		checkLabelSelector(r, p.At(i).Child("labelSelector"), term.LabelSelector, "invalid clusterSelector")
	}
}

func checkPatches(r *document.Report, p *document.FieldPath, rule api.OverrideRule) {
	patches := rule.JSONPatchOverrides
	if rule.OverrideType == api.DeleteOverrideType {
		if len(patches) > 0 {
			r.Rulef(p, "invalid JSONPatchOverrides: JSONPatchOverrides cannot be set when the override type is Delete; remove them")
		}
		return
	}
	if len(patches) == 0 {
		r.Rulef(p, "invalid JSONPatchOverrides: JSONPatchOverrides cannot be empty; write at least one patch")
		return
	}
	CheckLength(r, p, len(patches), 1, 20)
	for i, patch := range patches {
		if patch.Operator == api.JSONPatchRemove && len(patch.Value) > 0 && string(patch.Value) != "null" {
			r.Rulef(p.At(i).Child("value"), "invalid JSONPatchOverride %s: remove operation cannot have value; leave it out", patch.Path)
		}
		if msg := patchPathFault(patch.Path); msg != "" {
			r.Rulef(p.At(i).Child("path"), "invalid JSONPatchOverride %s: %s", patch.Path, msg)
		}
	}
}

// patchPathFault returns why an override may not change a path; empty if it may.
func patchPathFault(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch first := segments[0]; {
	case path == "":
		return "path cannot be empty"
	case path[0] != '/':
		return "path must start with /"
	case first == "kind" || first == "apiVersion":
		return "cannot override typeMeta fields"
	case first == "metadata" && len(segments) == 1:
		return "cannot override field metadata"
	case first == "metadata" && segments[1] != "annotations" && segments[1] != "labels":
		return "cannot override metadata fields except annotations and labels"
	case first == "status":
		return "cannot override status fields"
	}
	if slices.ContainsFunc(segments, func(s string) bool { return strings.TrimSpace(s) == "" }) {
		return "path cannot contain empty string"
	}
	return ""
}
