package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// external reports whether an external controller runs the rollout. Then each cluster is
// reported with the content that it has, and not with the newest.
func (b *builder) external() bool {
	return b.p.Spec.Spec.Strategy.Type == api.External
}

// atAssigned returns a cluster with the content that it holds as its latest, and the index of
// that content; empty if it holds none.
func (b *builder) atAssigned(c *plan.OnCluster) (*plan.OnCluster, string) {
	switch {
	case !c.Binding.HasRevision():
		return c, ""
	case c.UpToDate():
		return c, index(b.p.Record.Index)
	}
	pinned := *c
	pinned.Content, pinned.Err = work.Rendered{}, nil
	if holds := c.PreviousContent; holds != nil {
		pinned.Content = *holds
	}
	return &pinned, index(c.Binding.Index)
}

// useCommonContent reports the content that all clusters hold, if it is the same. The objects
// that an older content selected are no longer known.
func useCommonContent(s *api.PlacementStatus) {
	latest := s.ObservedResourceIndex
	if s.ObservedResourceIndex, _ = common(s.PlacementStatuses); s.ObservedResourceIndex != latest {
		s.SelectedResources = nil
	}
}

// common returns the index of the content that all clusters hold, empty if they hold none; same
// is false if they hold different ones.
func common(clusters []api.PerClusterPlacementStatus) (index string, same bool) {
	first := true
	for _, c := range clusters {
		switch {
		case c.ClusterName == "":
		case first:
			index, first = c.ObservedResourceIndex, false
		case index != c.ObservedResourceIndex:
			return "", false
		}
	}
	return index, true
}

// externalRolloutStarted is the condition RolloutStarted of a placement with an external
// rollout; v is the aggregate of its clusters.
func (b *builder) externalRolloutStarted(s *api.PlacementStatus, v conditionValue) conditionValue {
	index, same := common(s.PlacementStatuses)
	why := "different resource snapshot versions are observed across clusters"
	switch {
	case same && index != "":
		return v
	case same:
		run := "ClusterStagedUpdateRun"
		if b.p.Key.Namespace != "" {
			run = "StagedUpdateRun"
		}
		why = fmt.Sprintf("no resource snapshot name is observed across clusters. To determine rollout status, check the %s resources with spec.placementName matching this placement", run)
	}
	return conditionValue{metav1.ConditionUnknown, api.RolloutControlledByExternalController, "Rollout is controlled by an external controller and " + why}
}
