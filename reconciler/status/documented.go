package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// Conditions is a set of condition names.
type Conditions string

// The sets of condition names.
const (
	// CurrentConditions are those of current KubeFleet versions.
	CurrentConditions Conditions = "current"
	// DocumentedConditions adds those of older KubeFleet versions and the public documentation.
	DocumentedConditions Conditions = "documented"
)

// documented adds the older condition of a placement that stands for everything before a
// cluster begins to apply. The older API had neither rollouts nor overrides.
func (b *builder) documented(set *conditionSet) {
	if b.in.Conditions != DocumentedConditions {
		return
	}
	for _, typ := range []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized} {
		c := meta.FindStatusCondition(set.list, b.prefix()+typ)
		if c == nil { // no clusters
			return
		}
		if c.Status != metav1.ConditionTrue {
			set.add(b.prefix()+api.Synchronized, conditions.Value{Status: c.Status, Reason: c.Reason, Message: c.Message})
			return
		}
	}
	text := fmt.Sprintf("All %d cluster(s) are synchronized to the latest resources on the hub cluster", lineBuilder{b}.tally(api.WorkSynchronized).True)
	set.add(b.prefix()+api.Synchronized, conditions.True(api.SynchronizeSucceeded, text))
}

// documentedOn adds the older conditions of a placement on one cluster. The reason of a decision has
// no quotes around the cluster's name there.
func (b *builder) documentedOn(set *conditionSet) {
	if b.in.Conditions != DocumentedConditions {
		return
	}
	if c := meta.FindStatusCondition(set.list, api.Scheduled); c != nil {
		reason := api.ScheduleSucceeded
		if c.Status != metav1.ConditionTrue {
			reason = api.ScheduleFailed
		}
		set.add(api.ResourceScheduled, conditions.Value{Status: c.Status, Reason: reason, Message: strings.ReplaceAll(c.Message, `"`, "")})
	}
	switch c := meta.FindStatusCondition(set.list, api.Applied); {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		set.add(api.ResourceApplied, conditions.Value{Status: c.Status, Reason: api.ApplySucceeded, Message: "Successfully applied resources"})
	case c.Reason == api.ApplyInProgress:
		set.add(api.ResourceApplied, conditions.Value{Status: c.Status, Reason: c.Reason, Message: c.Message})
	default:
		set.add(api.ResourceApplied, conditions.Value{Status: c.Status, Reason: api.ApplyFailed, Message: "Failed to apply manifests, please check the `failedPlacements` status"})
	}
}
