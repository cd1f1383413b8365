package hub

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/placement/api"
)

// formerGroup is the former API group of KubeFleet's kinds.
const formerGroup = "fleet.azure.com"

var (
	// writtenByControllers are the kinds that users only read: KubeFleet's controllers or gitfleet
	// write them.
	writtenByControllers = strings.Fields(`ClusterResourcePlacementStatus ClusterResourceBinding ResourceBinding ClusterResourceSnapshot
		ResourceSnapshot ClusterSchedulingPolicySnapshot SchedulingPolicySnapshot ClusterResourceOverrideSnapshot
		ResourceOverrideSnapshot Work AppliedWork InternalMemberCluster`)
)

// isUnsupportedKind reports whether a kind is in one of gitfleet's groups and not supported, or is
// one of gitfleet's kinds in another group.
func isUnsupportedKind(gvk runtimeschema.GroupVersionKind) bool {
	if gvk.Group == formerGroup || gvk.Group == "" {
		_, supported := kindNamed(gvk.Kind)
		return supported
	}
	if !document.IsOwnGroup(gvk.Group) {
		return false
	}
	kind, known := api.ManifestKinds[gvk.GroupKind()]
	return !known || !slices.Contains(kind.Versions, gvk.Version)
}

// validateUnsupported reports a kind or version that gitfleet does not support.
func validateUnsupported(r *document.Report, gvk runtimeschema.GroupVersionKind) {
	if gk, ok := kindNamed(gvk.Kind); ok {
		r.Errorf(r.Field("apiVersion"), "%s is not known in %s; write apiVersion: %s/%s",
			gvk.Kind, gvk.GroupVersion(), gk.Group, api.ManifestKinds[gk].Versions[0])
		return
	}
	switch {
	case slices.Contains(writtenByControllers, gvk.Kind):
		r.Warnf(r.Field("kind"), "%s is written by controllers and has no effect in Git; remove it", gvk.Kind)
	default:
		r.Errorf(r.Field("kind"), "unknown kind %s in group %s; %s", gvk.Kind, gvk.Group, schema.DidYouMean(gvk.Kind, kindNames()))
	}
}

// kindNamed returns gitfleet's kind with a name.
func kindNamed(kind string) (api.GroupKind, bool) {
	for _, group := range []string{api.PlacementGroup, api.ClusterGroup, api.OverlayGroup} {
		gk := api.GroupKind{Group: group, Kind: kind}
		if _, ok := api.ManifestKinds[gk]; ok {
			return gk, true
		}
	}
	return api.GroupKind{}, false
}

// kindNames returns the kinds that users may mean, sorted.
func kindNames() []string {
	var names []string
	for gk := range api.ManifestKinds {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)
	return names
}
