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

// KubeFleet's kinds that gitfleet does not support. They configure a fleet and are never placed
// on clusters.
var (
	laterKinds = strings.Fields(`ClusterStagedUpdateRun ClusterStagedUpdateStrategy ClusterApprovalRequest StagedUpdateRun
		StagedUpdateStrategy ApprovalRequest ClusterResourcePlacementEviction ClusterResourcePlacementDisruptionBudget`)
	systemKinds = strings.Fields(`ClusterResourcePlacementStatus ClusterResourceBinding ResourceBinding ClusterResourceSnapshot
		ResourceSnapshot ClusterSchedulingPolicySnapshot SchedulingPolicySnapshot ClusterResourceOverrideSnapshot
		ResourceOverrideSnapshot Work AppliedWork InternalMemberCluster`)
)

// isUnsupportedKind reports whether a kind is in one of gitfleet's groups but not supported.
func isUnsupportedKind(gvk runtimeschema.GroupVersionKind) bool {
	if gvk.Group == formerGroup || gvk.Group == "" {
		_, elsewhere := kindNamed(gvk.Kind)
		return elsewhere
	}
	if !document.IsOwnGroup(gvk.Group) {
		return false
	}
	kind, known := api.Kinds[gvk.GroupKind()]
	return !known || !slices.Contains(kind.Versions, gvk.Version)
}

// validateUnsupported reports a kind or version that gitfleet does not support.
func validateUnsupported(r *document.Report, gvk runtimeschema.GroupVersionKind) {
	if gk, ok := kindNamed(gvk.Kind); ok {
		r.Errorf(r.Field("apiVersion"), "%s is not known in %s; write apiVersion: %s/%s",
			gvk.Kind, gvk.GroupVersion(), gk.Group, api.Kinds[gk].Versions[0])
		return
	}
	switch {
	case slices.Contains(laterKinds, gvk.Kind):
		r.Warnf(r.Field("kind"), "%s is not supported yet and has no effect", gvk.Kind)
	case slices.Contains(systemKinds, gvk.Kind):
		r.Warnf(r.Field("kind"), "%s is written by KubeFleet's own controllers and has no effect here; remove it", gvk.Kind)
	default:
		r.Errorf(r.Field("kind"), "unknown kind %s in group %s; %s", gvk.Kind, gvk.Group, schema.DidYouMean(gvk.Kind, kindNames()))
	}
}

func kindNamed(kind string) (api.GroupKind, bool) {
	for _, group := range []string{api.PlacementGroup, api.ClusterGroup} {
		gk := api.GroupKind{Group: group, Kind: kind}
		if _, ok := api.Kinds[gk]; ok {
			return gk, true
		}
	}
	return api.GroupKind{}, false
}

func kindNames() []string {
	names := slices.Clone(laterKinds)
	for gk := range api.Kinds {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)
	return names
}
