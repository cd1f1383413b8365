package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// A clusterBuilder builds the status of the placement on one cluster.
type clusterBuilder struct {
	builder *builder
	*plan.OnCluster
}

// cluster returns the status of the placement on the cluster at a position of the plan.
func (b *builder) cluster(at int, d placement.Decision, index string) api.PerClusterPlacementStatus {
	on := b.p.Clusters[at]
	s := api.PerClusterPlacementStatus{ClusterName: on.Binding.Cluster, ObservedResourceIndex: index}
	if b.external() {
		on, s.ObservedResourceIndex = b.atAssigned(on)
	}
	c := clusterBuilder{b, on}
	set := b.newConditionSet(s.ClusterName, at)
	set.add(api.Scheduled, conditionValue{metav1.ConditionTrue, api.ScheduledReason, d.Reason})
	for _, typ := range b.expected() {
		v := c.condition(typ)
		set.add(typ, v)
		if v.status != metav1.ConditionTrue {
			break
		}
		if typ == api.RolloutStarted {
			s.ApplicableClusterResourceOverrides = on.Content.ClusterOverrides
			s.ApplicableResourceOverrides = on.Content.Overrides
		}
	}
	b.documentedOn(&set)
	if v, held := b.deletionsHeld(on); held {
		set.add(api.DeletionsHeld, v)
	}
	s.Conditions = b.finish(set, s.ClusterName)
	c.objects(&s)
	return s
}

// condition returns the condition of one type.
func (c clusterBuilder) condition(typ string) conditionValue {
	switch typ {
	case api.RolloutStarted:
		return c.rolloutStarted()
	case api.Overridden:
		return c.overridden()
	case api.WorkSynchronized:
		return c.synchronized()
	case api.Available:
		return c.available()
	}
	// Applied, and DiffReported in its place
	inProgress := conditionValue{metav1.ConditionFalse, api.ApplyInProgress, "Resources are being applied"}
	failed := conditionValue{metav1.ConditionFalse, api.NotAllWorkHaveBeenApplied, "has failed to apply"}
	done := conditionValue{metav1.ConditionTrue, api.AllWorkHaveBeenApplied, "All corresponding work objects are applied"}
	if typ == api.DiffReported {
		inProgress = conditionValue{metav1.ConditionFalse, api.DiffReportInProgress, "Diff reporting on resources is in progress"}
		failed = conditionValue{metav1.ConditionFalse, api.NotAllWorkHaveDiffReported, "has failed to report diff"}
		done = conditionValue{metav1.ConditionTrue, api.AllWorkHaveDiffReported, "All corresponding work objects have reported diff"}
	}
	switch {
	case !c.Seen().Done:
		return inProgress
	case !c.allApplied():
		failed.message = "Work object " + c.failedWork() + " " + failed.message
		return failed
	}
	return done
}

func (c clusterBuilder) rolloutStarted() conditionValue {
	const undecided = "In the process of deciding whether to roll out some version of the resources or not"
	switch {
	case c.Binding.HasRevision() && (c.UpToDate() || c.builder.external()), c.Unbuilt():
		return conditionValue{metav1.ConditionTrue, api.RolloutStartedReason, "Detected the new changes on the resources and started the rollout process"}
	case c.builder.external():
		return conditionValue{metav1.ConditionUnknown, api.RolloutStartedUnknown, undecided + ": " + cmp.Or(c.Waits, "the strategy is External")}
	case c.Waits != "":
		return conditionValue{metav1.ConditionFalse, api.RolloutNotStartedYet, "The rollout is being blocked by the rollout strategy: " + c.Waits}
	case c.builder.p.InternalError != "" || c.builder.p.Selection.Invalid != "":
		return conditionValue{metav1.ConditionUnknown, api.RolloutStartedUnknown, undecided + ": " + c.builder.scheduled().message}
	}
	return conditionValue{metav1.ConditionUnknown, api.RolloutStartedUnknown, undecided}
}

func (c clusterBuilder) overridden() conditionValue {
	var failed *work.OverrideError
	switch {
	case errors.As(c.Err, &failed):
		return conditionValue{metav1.ConditionFalse, api.OverriddenFailed, "Failed to apply the override rules on the resources: " + failed.Error()}
	case len(c.Content.ClusterOverrides)+len(c.Content.Overrides) > 0:
		return conditionValue{metav1.ConditionTrue, api.OverriddenSucceeded, "Successfully applied the override rules on the resources"}
	}
	return conditionValue{metav1.ConditionTrue, api.NoOverrideSpecified, noOverrideText}
}

func (c clusterBuilder) synchronized() conditionValue {
	why := c.Unusual().Refusal
	if why == "" && c.Err != nil {
		why = c.Err.Error()
	}
	switch {
	case why != "":
		return conditionValue{metav1.ConditionFalse, api.SyncWorkFailed, "Failed to synchronize the work to the latest: " + why}
	case c.Seen() != nil:
		return conditionValue{metav1.ConditionTrue, api.AllWorkSynced, "All of the works are synchronized to the latest"}
	}
	text := "In the process of creating or updating the work object(s) in the hub cluster"
	if why := c.builder.unanswered[c.Binding.Cluster]; why != "" {
		text += "; the cluster does not answer: " + why
	}
	return conditionValue{metav1.ConditionUnknown, api.WorkSynchronizedUnknown, text}
}

func (c clusterBuilder) available() conditionValue {
	seen := c.Seen()
	if i := slices.IndexFunc(seen.Exceptions, func(o protocol.ObjectState) bool { return !o.Available.OK }); i >= 0 {
		return conditionValue{metav1.ConditionFalse, api.NotAllWorkAreAvailable, "Work object " + c.work(seen.Exceptions[i].Envelope) + " is not yet available"}
	}
	if seen.Untrackable > 0 {
		return conditionValue{metav1.ConditionTrue, api.NotAllWorkAreAvailabilityTrackable, "The availability of work object " + c.work(nil) + " is not trackable"}
	}
	return conditionValue{metav1.ConditionTrue, api.AllWorkAreAvailable, "All corresponding work objects are available"}
}

// allApplied reports whether every object is applied, including those that were never sent to
// the member.
func (c clusterBuilder) allApplied() bool {
	return c.Seen().Applied() && len(c.Content.Refused)+len(c.Unusual().Yielded) == 0
}

// failedWork is the name of the work of the first object that is not applied.
func (c clusterBuilder) failedWork() string {
	for i := range c.Seen().Exceptions {
		if o := &c.Seen().Exceptions[i]; !o.Applied.OK {
			return c.work(o.Envelope)
		}
	}
	if len(c.Content.Refused) > 0 {
		return c.work(c.Content.Refused[0].Envelope)
	}
	return c.work(c.Unusual().Yielded[0].Envelope)
}

// work is the name of the work that KubeFleet creates for an envelope, or without one for the
// objects in none.
func (c clusterBuilder) work(e *api.EnvelopeIdentifier) string {
	name := c.builder.p.Key.Name + "-work"
	if c.builder.p.Key.Namespace != "" {
		name = c.builder.p.Key.Namespace + "." + name
	}
	if e != nil {
		sum := sha256.Sum256([]byte(string(e.Type) + "/" + e.Namespace + "/" + e.Name))
		name += "-envelope-" + hex.EncodeToString(sum[:8])
	}
	return name
}

// external reports whether an external controller runs the rollout. Then each cluster is
// reported with the content that it has, and not with the newest.
func (b *builder) external() bool {
	return b.p.Spec.Spec.Strategy.Type == api.External
}

// atAssigned returns a cluster with the content that it holds as its latest, and the index of
// that content; empty if it holds none.
func (b *builder) atAssigned(c *plan.OnCluster) (*plan.OnCluster, string) {
	switch {
	case !c.Binding.HasRevision() || c.UpToDate():
		return c, b.indexOn(c)
	}
	pinned := *c
	pinned.Content, pinned.Err = &work.Rendered{}, nil
	if holds := c.PreviousContent; holds != nil {
		pinned.Content = holds
	}
	return &pinned, b.indexOn(c)
}

// indexOn returns the index of the content that a cluster holds; empty if it holds none.
func (b *builder) indexOn(c *plan.OnCluster) string {
	switch {
	case !c.Binding.HasRevision():
		return ""
	case c.UpToDate():
		return metadata.SnapshotIndex(b.p.Record.Index)
	}
	return metadata.SnapshotIndex(int(c.Binding.Index))
}

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
			index, first = b.indexOn(c), false
		case index != b.indexOn(c):
			return "", false
		}
	}
	return index, true
}

// externalRolloutStarted is the condition RolloutStarted of a placement with an external
// rollout; v is the aggregate of its clusters.
func (b *builder) externalRolloutStarted(v conditionValue) conditionValue {
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
	return conditionValue{metav1.ConditionUnknown, api.RolloutControlledByExternalController, "Rollout is controlled by an external controller and " + why}
}
