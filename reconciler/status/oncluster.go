package status

import (
	"cmp"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// cluster returns the status of the placement on one cluster.
func (b *builder) cluster(c *plan.OnCluster, d placement.Decision, index string) api.PerClusterPlacementStatus {
	s := api.PerClusterPlacementStatus{ClusterName: c.Binding.Cluster, ObservedResourceIndex: index}
	if b.external() {
		c, s.ObservedResourceIndex = b.atAssigned(c)
	}
	set := b.newConditionSet(c.Binding.Cluster)
	set.add(api.Scheduled, conditionValue{metav1.ConditionTrue, api.ScheduledReason, d.Reason})
	for _, typ := range b.expected() {
		v := b.conditionOn(c, typ)
		set.add(typ, v)
		if typ == api.RolloutStarted && v.status == metav1.ConditionTrue {
			s.ApplicableClusterResourceOverrides = c.Content.ClusterOverrides
			s.ApplicableResourceOverrides = c.Content.Overrides
		}
		if v.status != metav1.ConditionTrue {
			break
		}
	}
	b.documentedOn(set)
	if v, held := b.deletionsHeld(c); held {
		set.add(api.DeletionsHeld, v)
	}
	s.Conditions = b.finish(set, c.Binding.Cluster)
	b.objects(c, &s)
	return s
}

// conditionOn returns the condition of one type for a cluster.
func (b *builder) conditionOn(c *plan.OnCluster, typ string) conditionValue {
	switch typ {
	case api.RolloutStarted:
		return b.rolloutStarted(c)
	case api.Overridden:
		return overridden(c)
	case api.WorkSynchronized:
		return b.synchronized(c)
	case api.Applied:
		return b.applied(c)
	case api.Available:
		return b.available(c)
	default:
		return b.diffReported(c)
	}
}

func (b *builder) rolloutStarted(c *plan.OnCluster) conditionValue {
	switch {
	case c.Binding.HasRevision() && (c.UpToDate() || b.external()):
		return conditionValue{metav1.ConditionTrue, api.RolloutStartedReason, "Detected the new changes on the resources and started the rollout process"}
	case b.external():
		return conditionValue{metav1.ConditionUnknown, api.RolloutStartedUnknown, "In the process of deciding whether to roll out some version of the resources or not: " + cmp.Or(c.Waits, "the strategy is External")}
	case c.Waits != "":
		return conditionValue{metav1.ConditionFalse, api.RolloutNotStartedYet, "The rollout is being blocked by the rollout strategy: " + c.Waits}
	default:
		return conditionValue{metav1.ConditionUnknown, api.RolloutStartedUnknown, "In the process of deciding whether to roll out some version of the resources or not" + b.pendingReason()}
	}
}

// pendingReason is why nothing is decided about a cluster that the placement keeps.
func (b *builder) pendingReason() string {
	if v := b.scheduled(); v.status != metav1.ConditionTrue && (b.p.InternalError != "" || b.p.Selection.Invalid != "") {
		return ": " + v.message
	}
	return ""
}

func overridden(c *plan.OnCluster) conditionValue {
	var failed *work.OverrideError
	switch {
	case errors.As(c.Err, &failed):
		return conditionValue{metav1.ConditionFalse, api.OverriddenFailed, "Failed to apply the override rules on the resources: " + failed.Error()}
	case len(c.Content.ClusterOverrides)+len(c.Content.Overrides) > 0:
		return conditionValue{metav1.ConditionTrue, api.OverriddenSucceeded, "Successfully applied the override rules on the resources"}
	default:
		return conditionValue{metav1.ConditionTrue, api.NoOverrideSpecified, noOverrideText}
	}
}

func (b *builder) synchronized(c *plan.OnCluster) conditionValue {
	switch {
	case c.Foreign != "":
		return conditionValue{metav1.ConditionFalse, api.SyncWorkFailed, "Failed to synchronize the work to the latest: " + c.Foreign}
	case c.Err != nil:
		return conditionValue{metav1.ConditionFalse, api.SyncWorkFailed, "Failed to synchronize the work to the latest: " + c.Err.Error()}
	case c.Seen() == nil:
		text := "In the process of creating or updating the work object(s) in the hub cluster"
		if why := b.unreachable(c.Binding.Cluster); why != "" {
			text += "; the cluster does not answer: " + why
		}
		return conditionValue{metav1.ConditionUnknown, api.WorkSynchronizedUnknown, text}
	default:
		return conditionValue{metav1.ConditionTrue, api.AllWorkSynced, "All of the works are synchronized to the latest"}
	}
}

func (b *builder) unreachable(cluster string) string {
	if seen := b.Ledger.Cluster(cluster); seen != nil && !seen.Healthy {
		return seen.Error
	}
	return ""
}

func (b *builder) applied(c *plan.OnCluster) conditionValue {
	seen := c.Seen()
	switch {
	case !seen.Done:
		return conditionValue{metav1.ConditionFalse, api.ApplyInProgress, "Resources are being applied"}
	case !allApplied(c):
		return conditionValue{metav1.ConditionFalse, api.NotAllWorkHaveBeenApplied, fmt.Sprintf("Work object %s has failed to apply", b.failedWork(c))}
	default:
		return conditionValue{metav1.ConditionTrue, api.AllWorkHaveBeenApplied, "All corresponding work objects are applied"}
	}
}

func (b *builder) available(c *plan.OnCluster) conditionValue {
	seen := c.Seen()
	switch {
	case !seen.Available():
		return conditionValue{metav1.ConditionFalse, api.NotAllWorkAreAvailable, fmt.Sprintf("Work object %s is not yet available", b.workOf(unavailable(seen)))}
	case seen.Untrackable > 0:
		return conditionValue{metav1.ConditionTrue, api.NotAllWorkAreAvailabilityTrackable, fmt.Sprintf("The availability of work object %s is not trackable", b.mainWork())}
	default:
		return conditionValue{metav1.ConditionTrue, api.AllWorkAreAvailable, "All corresponding work objects are available"}
	}
}

func (b *builder) diffReported(c *plan.OnCluster) conditionValue {
	seen := c.Seen()
	switch {
	case !seen.Done:
		return conditionValue{metav1.ConditionFalse, api.DiffReportInProgress, "Diff reporting on resources is in progress"}
	case !allApplied(c):
		return conditionValue{metav1.ConditionFalse, api.NotAllWorkHaveDiffReported, fmt.Sprintf("Work object %s has failed to report diff", b.failedWork(c))}
	default:
		return conditionValue{metav1.ConditionTrue, api.AllWorkHaveDiffReported, "All corresponding work objects have reported diff"}
	}
}

// allApplied reports whether every object is applied, including those that were never sent to
// the member.
func allApplied(c *plan.OnCluster) bool {
	return c.Seen().Applied() && len(c.Content.Refused)+len(c.Yielded) == 0
}

// failedWork is the name of the work of the first object that is not applied.
func (b *builder) failedWork(c *plan.OnCluster) string {
	for i := range c.Seen().Exceptions {
		if o := &c.Seen().Exceptions[i]; !o.Applied.OK {
			return b.workOf(o.Envelope)
		}
	}
	if len(c.Content.Refused) > 0 {
		return b.workOf(c.Content.Refused[0].Envelope)
	}
	return b.workOf(c.Yielded[0].Envelope)
}

// unavailable is the envelope of the first object that is not available; nil if it is in none.
func unavailable(seen *ledger.WorkSeen) *api.EnvelopeIdentifier {
	for i := range seen.Exceptions {
		if o := &seen.Exceptions[i]; !o.Available.OK {
			return o.Envelope
		}
	}
	return nil
}

func (b *builder) workOf(e *api.EnvelopeIdentifier) string {
	if e != nil {
		return envelopeWork(b.mainWork(), e)
	}
	return b.mainWork()
}

func (b *builder) mainWork() string {
	if b.p.Key.Namespace == "" {
		return b.p.Key.Name + "-work"
	}
	return b.p.Key.Namespace + "." + b.p.Key.Name + "-work"
}
