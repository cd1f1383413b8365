package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// external reports whether runs from outside move the clusters. Then each is
// told of as what it holds, not as what is newest.
func (b *builder) external() bool {
	return b.p.Spec.Spec.Strategy.Type == api.External
}

// asPinned is a cluster with the content that it holds, and which of the
// placement's contents that is; the empty string if it holds none.
func (b *builder) asPinned(c *plan.OnCluster) (*plan.OnCluster, string) {
	switch {
	case !c.Binding.Released():
		return c, ""
	case c.UpToDate():
		return c, index(b.p.Record.Index)
	}
	pinned := *c
	pinned.Content, pinned.Err = work.Rendered{}, nil
	if holds := c.HeldContent(); holds != nil {
		pinned.Content = *holds
	}
	return &pinned, index(c.Binding.Index)
}

// pinned gives a placement the content that all its clusters hold, if they hold
// the same. Of an older one it is not known any more what it selected.
func (b *builder) pinned(s *api.PlacementStatus) {
	latest := s.ObservedResourceIndex
	s.ObservedResourceIndex, _ = common(s.PlacementStatuses)
	if s.ObservedResourceIndex != latest {
		s.SelectedResources = nil
	}
}

// common is the content that all clusters hold, empty if they hold none; same
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

// externally is the condition RolloutStarted of a placement whose rollout
// somebody else controls; v is the account of its clusters.
func (b *builder) externally(s *api.PlacementStatus, v verdict) verdict {
	const prefix = "Rollout is controlled by an external controller and "
	unknown := verdict{status: metav1.ConditionUnknown, reason: api.RolloutControlledByExternalController}
	index, same := common(s.PlacementStatuses)
	switch {
	case !same:
		unknown.message = prefix + "different resource snapshot versions are observed across clusters"
	case index == "":
		run := "ClusterStagedUpdateRun"
		if b.p.Key.Namespace != "" {
			run = "StagedUpdateRun"
		}
		unknown.message = fmt.Sprintf(prefix+"no resource snapshot name is observed across clusters. To determine rollout status, check the %s resources with spec.placementName matching this placement", run)
	default:
		return v
	}
	return unknown
}
