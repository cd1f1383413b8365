package hub

import (
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An item is one object of the commit. At most one of object, placement, cluster,
// clusterOverride, override, vars, window, gate, eviction, budget, strategy, run and approval is set; none is if the item is only a definition.
type item struct {
	id     api.ID
	origin api.Origin
	// top is the object's position in its document: nil, or an item of a list.
	top *document.FieldPath

	object          *api.Object
	placement       *Placement
	cluster         *Cluster
	clusterOverride *ClusterOverride
	override        *Override
	vars            *api.ClusterVars
	strategy        *stagedStrategy
	run             *api.StagedUpdateRunSpec
	approval        *api.ApprovalRequestSpec
	window          *Window
	gate            *Gate
	// staged is the manifest of the strategy, run or approval.
	staged   *StagedManifest
	eviction *Eviction
	budget   *Budget

	// wrapped are the objects of an envelope.
	wrapped []wrapped
	// overlay is what an Overlay or a ClusterOverlay builds; nil for other objects.
	overlay *api.OverlaySpec
	// chart is what a HelmChart or a ClusterHelmChart renders; nil for other objects.
	chart *api.ChartSpec
	// scope is the scope that a CustomResourceDefinition declares; nil for other kinds.
	scope *declaredScope
	// custom says that the object's kind is not built in.
	custom bool
	// lines are the lines of fields that are compared with other objects.
	lines map[string]int

	// definition is what a custom object was compared with, and mismatches is the result.
	definition *item
	mismatches problem.List
	// unnamespaced is the item without its namespace; set when it is first needed.
	unnamespaced *item
	// namespaced is the item in the namespace of an overlay; set when it is first needed.
	namespaced *item
}

type declaredScope struct {
	kind       api.GroupKind
	namespaced bool
}

// A wrapped object is one entry of an envelope.
type wrapped struct {
	id     api.ID
	origin api.Origin
	// field is its field in the envelope, such as data[app.yaml].
	field string
	// unread says that the entry could not be read, so that it may be any object.
	unread bool
	// known says that the kind is built in, so that the commit does not define it.
	known bool
}

// A stagedStrategy is a declared strategy, with the values of its annotations.
type stagedStrategy struct {
	*api.StagedUpdateStrategySpec
	unmatched, onFailure string
	// unreachablePerStage and unreachablePerRun are the values of api.MaxUnreachablePerStageAnnotation and api.MaxUnreachablePerRunAnnotation.
	unreachablePerStage, unreachablePerRun string
	// failedPerStage and failedPerRun are those of api.MaxFailedPerStageAnnotation and api.MaxFailedPerRunAnnotation.
	failedPerStage, failedPerRun string

	byReview []string
	gates    map[string]*api.RolloutGateSpec
}

// chartKind is the kind of charts that have objects of their own namespace only.
const chartKind = "HelmChart"

// at returns the position of a field, if it was recorded.
func (it *item) at(field string) api.Origin {
	origin := it.origin
	if line, ok := it.lines[field]; ok {
		origin.Line = line
	}
	return origin
}

// isBuilder reports whether the item is an overlay or a chart.
func (it *item) isBuilder() bool { return it.overlay != nil || it.chart != nil }

// built reports whether the item was built by kustomize, which sets a namespace on objects of
// kinds that it does not know, or from a chart.
func (it *item) built() bool { return it.origin.Kustomization != "" }

// isConfiguration reports whether the item configures the fleet, so that no placement selects it.
func (it *item) isConfiguration() bool {
	return it.placement != nil || it.cluster != nil || it.clusterOverride != nil || it.override != nil || it.vars != nil || it.window != nil || it.gate != nil || it.eviction != nil || it.budget != nil || it.staged != nil
}

// positionText formats a position, with the kustomization that includes it.
func positionText(o api.Origin) string {
	if o.Kustomization == "" || o.Kustomization == o.Path {
		return o.String()
	}
	return o.String() + " (built by " + o.Kustomization + ")"
}
