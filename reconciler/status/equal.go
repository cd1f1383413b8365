package status

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// sameStatus reports whether two statuses are equal.
func sameStatus(a, b *api.PlacementStatus) bool {
	return a.ObservedResourceIndex == b.ObservedResourceIndex &&
		slices.EqualFunc(a.SelectedResources, b.SelectedResources, sameIdentifier) &&
		slices.Equal(a.Conditions, b.Conditions) &&
		slices.EqualFunc(a.PlacementStatuses, b.PlacementStatuses, sameOnCluster)
}

func sameOnCluster(a, b api.PerClusterPlacementStatus) bool {
	return a.ClusterName == b.ClusterName && a.ObservedResourceIndex == b.ObservedResourceIndex &&
		slices.Equal(a.ApplicableClusterResourceOverrides, b.ApplicableClusterResourceOverrides) &&
		slices.Equal(a.ApplicableResourceOverrides, b.ApplicableResourceOverrides) &&
		slices.Equal(a.Conditions, b.Conditions) &&
		slices.EqualFunc(a.FailedPlacements, b.FailedPlacements, sameFailed) &&
		slices.EqualFunc(a.DriftedPlacements, b.DriftedPlacements, sameDrifted) &&
		slices.EqualFunc(a.DiffedPlacements, b.DiffedPlacements, sameDiffed)
}

func sameIdentifier(a, b api.ResourceIdentifier) bool {
	if (a.Envelope == nil) != (b.Envelope == nil) || a.Envelope != nil && *a.Envelope != *b.Envelope {
		return false
	}
	a.Envelope, b.Envelope = nil, nil
	return a == b
}

func sameFailed(a, b api.FailedResourcePlacement) bool {
	return a.Condition == b.Condition && sameIdentifier(a.ResourceIdentifier, b.ResourceIdentifier)
}

func sameDrifted(a, b api.DriftedResourcePlacement) bool {
	return sameIdentifier(a.ResourceIdentifier, b.ResourceIdentifier) &&
		a.ObservationTime == b.ObservationTime && a.FirstDriftedObservedTime == b.FirstDriftedObservedTime &&
		a.TargetClusterObservedGeneration == b.TargetClusterObservedGeneration && slices.Equal(a.ObservedDrifts, b.ObservedDrifts)
}

func sameDiffed(a, b api.DiffedResourcePlacement) bool {
	x, y := a.TargetClusterObservedGeneration, b.TargetClusterObservedGeneration
	return sameIdentifier(a.ResourceIdentifier, b.ResourceIdentifier) &&
		a.ObservationTime == b.ObservationTime && a.FirstDiffedObservedTime == b.FirstDiffedObservedTime &&
		(x == nil) == (y == nil) && (x == nil || *x == *y) && slices.Equal(a.ObservedDiffs, b.ObservedDiffs)
}

func sameDetail(a, b *Detail) bool {
	return a.Placement == b.Placement && a.Origin == b.Origin && a.Internal == b.Internal && a.Stopped == b.Stopped && a.Proven == b.Proven &&
		a.Selected == b.Selected && sameRollout(a.Rollout, b.Rollout) &&
		slices.Equal(a.Warnings, b.Warnings) && slices.EqualFunc(a.Clusters, b.Clusters, sameClusterDetail)
}

func sameRollout(a, b *Rollout) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Started.Equal(b.Started) && a.Finished.Equal(b.Finished) && a.Updated == b.Updated && a.Target == b.Target &&
		a.Unavailable == b.Unavailable && a.MaxUnavailable == b.MaxUnavailable
}

func sameClusterDetail(a, b ClusterDetail) bool {
	return a.Cluster == b.Cluster && a.Commit == b.Commit && a.Applied == b.Applied && a.Available == b.Available && a.Objects == b.Objects &&
		a.FailedObjects == b.FailedObjects && a.Behind == b.Behind && a.BehindSince.Equal(b.BehindSince) &&
		a.Failure == b.Failure && a.Progressing == b.Progressing && a.Held == b.Held && a.Suspended == b.Suspended && a.Removing == b.Removing &&
		slices.Equal(a.Braked, b.Braked) && a.Deleting == b.Deleting && slices.Equal(a.DeletionErrors, b.DeletionErrors) && slices.Equal(a.Lingering, b.Lingering)
}

// sameMeta reports whether the metadata that gitfleet sets is equal.
func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && a.Generation == b.Generation &&
		a.CreationTimestamp == b.CreationTimestamp &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
