package kubeapi

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

var maskedData = base64.StdEncoding.EncodeToString([]byte(diff.Mask))

// maskedClusterOverride masks the values that an override sets. One that selects a Namespace
// affects the Secrets in it.
func maskedClusterOverride(s api.ClusterResourceOverrideSpec) api.ClusterResourceOverrideSpec {
	if slices.ContainsFunc(s.ClusterResourceSelectors, func(t api.ResourceSelectorTerm) bool {
		return t.Group == "" && t.Kind == "Namespace"
	}) {
		s.Policy = maskedPolicy(s.Policy)
	}
	return s
}

func maskedOverride(s api.ResourceOverrideSpec) api.ResourceOverrideSpec {
	if slices.ContainsFunc(s.ResourceSelectors, func(t api.ResourceSelector) bool {
		return t.Group == "" && t.Kind == "Secret"
	}) {
		s.Policy = maskedPolicy(s.Policy)
	}
	return s
}

func maskedPolicy(p *api.OverridePolicy) *api.OverridePolicy {
	if p == nil {
		return nil
	}
	out := &api.OverridePolicy{OverrideRules: slices.Clone(p.OverrideRules)}
	for i := range out.OverrideRules {
		rule := &out.OverrideRules[i]
		rule.JSONPatchOverrides = slices.Clone(rule.JSONPatchOverrides)
		for j := range rule.JSONPatchOverrides {
			if patch := &rule.JSONPatchOverrides[j]; touchesData(patch.Path) && len(patch.Value) > 0 {
				patch.Value = maskedJSON
			}
		}
	}
	return out
}

var maskedJSON, _ = json.Marshal(diff.Mask)

// touchesData reports whether a path leads to the values of a Secret.
func touchesData(path string) bool {
	for _, field := range []string{"/data", "/stringData"} {
		if path == field || strings.HasPrefix(path, field+"/") {
			return true
		}
	}
	return false
}
