package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
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
			set.add(b.prefix()+api.Synchronized, conditionValue{c.Status, c.Reason, c.Message})
			return
		}
	}
	text := fmt.Sprintf("All %d cluster(s) are synchronized to the latest resources on the hub cluster", lineBuilder{b}.tally(api.WorkSynchronized).yes)
	set.add(b.prefix()+api.Synchronized, conditionValue{metav1.ConditionTrue, api.SynchronizeSucceeded, text})
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
		set.add(api.ResourceScheduled, conditionValue{c.Status, reason, strings.ReplaceAll(c.Message, `"`, "")})
	}
	switch c := meta.FindStatusCondition(set.list, api.Applied); {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		set.add(api.ResourceApplied, conditionValue{c.Status, api.ApplySucceeded, "Successfully applied resources"})
	case c.Reason == api.ApplyInProgress:
		set.add(api.ResourceApplied, conditionValue{c.Status, c.Reason, c.Message})
	default:
		set.add(api.ResourceApplied, conditionValue{c.Status, api.ApplyFailed, "Failed to apply manifests, please check the `failedPlacements` status"})
	}
}
