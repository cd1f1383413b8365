package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// cluster returns the status of the placement on the cluster at a position of the plan.
func (b *builder) cluster(at int, d placement.Decision, index string) api.PerClusterPlacementStatus {
	on := b.onCluster(b.p.Clusters[at])
	s := api.PerClusterPlacementStatus{ClusterName: on.Binding.Cluster, ObservedResourceIndex: index}
	if b.external() {
		s.ObservedResourceIndex = conditions.IndexOn(b.p, b.p.Clusters[at])
	}
	set := b.newConditionSet(s.ClusterName, at)
	set.add(api.Scheduled, conditions.True(api.ScheduledReason, d.Reason))
	for _, typ := range b.expected() {
		v := on.Condition(typ)
		set.add(typ, v)
		if v.Status != metav1.ConditionTrue {
			break
		}
		if typ == api.RolloutStarted {
			s.ApplicableClusterResourceOverrides = on.Content.ClusterOverrides
			s.ApplicableResourceOverrides = on.Content.Overrides
		}
	}
	b.documentedOn(&set)
	if v, held := conditions.DeletionsHeld(b.p, on.OnCluster); held {
		set.add(api.DeletionsHeld, v)
	}
	s.Conditions = b.finish(set, s.ClusterName)
	on.AddObjects(&s)
	return s
}

// onCluster returns what the status says of a cluster.
func (b *builder) onCluster(c *plan.OnCluster) conditions.Cluster {
	return conditions.On(b.p, c, b.unanswered[c.Binding.Cluster])
}

// external reports whether an external controller runs the rollout.
func (b *builder) external() bool { return conditions.External(b.p) }

// useCommonContent reports the content that all clusters hold, if it is the same. The objects
// that an older content selected are no longer known.
func (b *builder) useCommonContent(s *api.PlacementStatus) {
	latest := s.ObservedResourceIndex
	if s.ObservedResourceIndex, _ = b.common(); s.ObservedResourceIndex != latest {
		s.SelectedResources = nil
	}
}

// common returns the index of the content that all selected clusters hold, empty if they hold none; same
// is false if they hold different ones.
func (b *builder) common() (index string, same bool) {
	first, lines := true, lineBuilder{b}.lines()
	for i, c := range b.p.Clusters {
		switch {
		case !lines.At(i).selected:
		case first:
			index, first = conditions.IndexOn(b.p, c), false
		case index != conditions.IndexOn(b.p, c):
			return "", false
		}
	}
	return index, true
}

// externalRolloutStarted is the condition RolloutStarted of a placement with an external
// rollout; v is the aggregate of its clusters.
func (b *builder) externalRolloutStarted(v conditions.Value) conditions.Value {
	index, same := b.common()
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
	return conditions.Unknown(api.RolloutControlledByExternalController, "Rollout is controlled by an external controller and "+why)
}
