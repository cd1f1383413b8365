package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Conditions say which names conditions have.
type Conditions string

// The names.
const (
	// CurrentConditions are those of today's KubeFleet.
	CurrentConditions Conditions = "current"
	// DocumentedConditions are the same, with those beside them that older
	// KubeFleet and the public documentation have.
	DocumentedConditions Conditions = "documented"
)

// documented adds the older condition of a placement that stands for all that
// comes before a cluster begins to apply. The older API knew nothing of a
// rollout, nor of overrides.
func (b *builder) documented(set *stamped, clusters []api.PerClusterPlacementStatus) {
	if b.Conditions != DocumentedConditions {
		return
	}
	for _, typ := range []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized} {
		c := find(set.list, b.prefix()+typ)
		switch {
		case c == nil:
			return // no cluster, nothing to tell
		case c.Status != metav1.ConditionTrue:
			set.add(b.prefix()+api.Synchronized, verdict{c.Status, c.Reason, c.Message})
			return
		case typ == api.WorkSynchronized:
			n := tally(clusters, typ).yes
			set.add(b.prefix()+api.Synchronized, verdict{c.Status, api.SynchronizeSucceeded, fmt.Sprintf("All %d cluster(s) are synchronized to the latest resources on the hub cluster", n)})
		}
	}
}

// documentedOn adds the older conditions of a placement on one cluster.
func (b *builder) documentedOn(set *stamped) {
	if b.Conditions != DocumentedConditions {
		return
	}
	if c := find(set.list, api.Scheduled); c != nil {
		set.add(api.ResourceScheduled, documentedScheduled(c.Status, c.Message))
	}
	switch c := find(set.list, api.Applied); {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		set.add(api.ResourceApplied, verdict{c.Status, api.ApplySucceeded, "Successfully applied resources"})
	case c.Reason == api.ApplyInProgress:
		set.add(api.ResourceApplied, verdict{c.Status, c.Reason, c.Message})
	default:
		set.add(api.ResourceApplied, verdict{c.Status, api.ApplyFailed, "Failed to apply manifests, please check the `failedPlacements` status"})
	}
}

// documentedScheduled words a decision as it once was: without quotes around
// the cluster's name.
func documentedScheduled(status metav1.ConditionStatus, decision string) verdict {
	reason := api.ScheduleSucceeded
	if status != metav1.ConditionTrue {
		reason = api.ScheduleFailed
	}
	return verdict{status, reason, strings.ReplaceAll(decision, `"`, "")}
}
