package kubeapi

import (
	eventsv1 "k8s.io/api/events/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/printer"
)

// builtIn are the kinds that are served whatever the commit declares.
var (
	clusterPlacements = fleetKind(api.PlacementGroup, "ClusterResourcePlacement", printer.Placements)
	placements        = fleetKind(api.PlacementGroup, "ResourcePlacement", printer.Placements)
	clusterOverrides  = declaredKind("ClusterResourceOverride")
	overrides         = declaredKind("ResourceOverride")
	memberClusters    = fleetKind(api.ClusterGroup, "MemberCluster", printer.Clusters)
	evictions         = withAlpha(fleetKind(api.PlacementGroup, "ClusterResourcePlacementEviction", printer.Evictions), printer.EvictionsAlpha)
	budgets           = declaredKind("ClusterResourcePlacementDisruptionBudget")
	windows           = configurationKind(api.OverlayGroup, "RolloutWindow", printer.Windows)
	gates             = configurationKind(api.OverlayGroup, "RolloutGate", printer.Gates)
	placementStatuses = &kind{
		group: api.PlacementGroup, name: "ClusterResourcePlacementStatus", plural: "clusterresourceplacementstatuses",
		singular: "clusterresourceplacementstatus", versions: []string{"v1beta1", "v1"}, namespaced: true,
		short: []string{"crps"}, categories: placementCategories, columns: printer.PlacementStatusObjects, generated: true,
	}
	clusterRuns      = withAlpha(fleetKind(api.PlacementGroup, "ClusterStagedUpdateRun", printer.UpdateRuns), printer.UpdateRunsAlpha)
	runs             = fleetKind(api.PlacementGroup, "StagedUpdateRun", printer.UpdateRuns)
	clusterApprovals = approvalKind("ClusterApprovalRequest")
	approvals        = approvalKind("ApprovalRequest")

	coreEvents  = eventKind("", coreFields)
	otherEvents = eventKind(eventsv1.GroupName, otherFields)

	builtIn = []*kind{
		clusterPlacements, placements, clusterOverrides, overrides, declaredKind("ClusterResourceEnvelope"), declaredKind("ResourceEnvelope"),
		declaredKind("ClusterStagedUpdateStrategy"), declaredKind("StagedUpdateStrategy"), clusterRuns, runs, clusterApprovals, approvals,
		memberClusters, placementStatuses, evictions, budgets, windows, gates, coreEvents, otherEvents, accessReviews,
	}
)
