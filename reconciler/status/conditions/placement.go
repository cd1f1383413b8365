package conditions

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Scheduled is the condition Scheduled of a placement.
func Scheduled(p *plan.Placement) Value {
	switch {
	case p.Pending:
		return Unknown(api.SchedulePending, "Scheduling has not completed")
	case p.InternalError != "":
		return False(api.SchedulingFailed, "An internal error kept the placement from being decided; it keeps what it holds. The log has the details")
	case p.Selection.Invalid != "":
		return False(api.InvalidResourceSelectors, p.Selection.Invalid)
	}
	fulfilled := p.Schedule.Fulfilled
	v := False(placement.ScheduledReason(fulfilled), placement.ScheduledMessage(fulfilled, p.Schedule.Found))
	if fulfilled {
		v.Status = metav1.ConditionTrue
	}
	return v
}

// Counts are the numbers of clusters by the status of a condition.
type Counts struct{ True, False, Unknown int }

// Aggregate returns the placement's condition of a type, given the clusters' conditions of that
// type.
func Aggregate(p *plan.Placement, typ string, n Counts) Value {
	texts := aggregated[typ]
	switch {
	case n.Unknown > 0:
		return Unknown(texts.unknown, fmt.Sprintf(texts.unknownText, n.Unknown))
	case n.False > 0:
		return False(texts.no, fmt.Sprintf(texts.noText, n.False))
	case typ == api.Overridden && !overridden(p):
		return True(api.NoOverrideSpecified, noOverrideText)
	}
	return True(texts.yes, fmt.Sprintf(texts.yesText, n.True))
}

// overridden reports whether overrides apply to any cluster.
func overridden(p *plan.Placement) bool {
	return slices.ContainsFunc(p.Clusters, func(c *plan.OnCluster) bool {
		return len(c.Content.ClusterOverrides)+len(c.Content.Overrides) > 0
	})
}

// noOverrideText is the message of the condition Overridden without overrides.
const noOverrideText = "No override rules are configured for the selected resources"

// aggregated are the reasons and messages of a placement's conditions, by type.
var aggregated = map[string]struct{ unknown, unknownText, no, noText, yes, yesText string }{
	api.RolloutStarted: {
		api.RolloutStartedUnknown, "There are still %d cluster(s) in the process of deciding whether to roll out the latest resources or not",
		api.RolloutNotStartedYet, "The rollout is being blocked by the rollout strategy in %d cluster(s)",
		api.RolloutStartedReason, "All %d cluster(s) start rolling out the latest resource",
	},
	api.Overridden: {
		api.OverriddenPending, "There are still %d cluster(s) in the process of overriding the selected resources if there is any override defined",
		api.OverriddenFailed, "Failed to override resources in %d cluster(s)",
		api.OverriddenSucceeded, "The selected resources are successfully overridden in %d cluster(s)",
	},
	api.WorkSynchronized: {
		api.WorkSynchronizedUnknown, "There are still %d cluster(s) in the process of creating or updating the work object(s) in the hub cluster",
		api.WorkNotSynchronizedYet, "There are %d cluster(s) which have not finished creating or updating work(s) yet",
		api.WorkSynchronizedReason, "Work(s) are successfully created or updated in %d target cluster(s)' namespaces",
	},
	api.Applied: {
		api.ApplyPending, "There are still %d cluster(s) in the process of applying the resources on the member cluster",
		api.ApplyFailed, "Failed to apply resources to %d cluster(s), please check the `failedPlacements` status",
		api.ApplySucceeded, "The selected resources are successfully applied to %d cluster(s)",
	},
	api.Available: {
		api.ResourceAvailableUnknown, "There are still %d cluster(s) in the process of checking the availability of the selected resources",
		api.ResourceNotAvailableYet, "The selected resources in %d cluster(s) are still not available yet",
		api.ResourceAvailable, "The selected resources in %d cluster(s) are available now",
	},
	api.DiffReported: {
		api.DiffReportingPending, "There are still %d cluster(s) in the process of checking for configuration differences",
		api.DiffReportingIncompleteOrFailed, "Diff reporting in %d clusters is still in progress or has failed",
		api.DiffReportingCompleted, "Diff reporting in %d cluster(s) has been completed",
	},
}

// DeletionsBlocked is the condition DeletionsHeld for the given clusters of the placement; false
// if no deletions are blocked there.
func DeletionsBlocked(p *plan.Placement, clusters ...*plan.OnCluster) (v Value, isTrue bool) {
	objects, on, example := 0, 0, ""
	for _, c := range clusters {
		blocked, pending := c.BlockedDeletions()
		if pending || len(blocked) == 0 {
			continue
		}
		if on == 0 {
			example = fmt.Sprintf("%s on %s: %s", blocked[0].ID, c.Binding.Cluster, blocked[0].Why)
		}
		objects += len(blocked)
		on++
	}
	if on == 0 {
		return Value{}, false
	}
	text := fmt.Sprintf("Deleting %d object(s) on %d cluster(s) is blocked, such as %s; %s", objects, on, example, DeletionAdvice(p.Key.String()))
	return True(api.AllowedByNoCommit, text), true
}

// DeletionAdvice says what to do about blocked deletions of a placement (crp/NAME or
// rp/NAMESPACE/NAME).
func DeletionAdvice(placement string) string {
	return fmt.Sprintf("if that is a mistake, correct the placement or put back what was removed; otherwise add the trailer %q to the message of a commit", AllowTrailer(placement))
}

// AllowTrailer returns the line in a commit message that allows the blocked deletions of a
// placement (crp/NAME or rp/NAMESPACE/NAME).
func AllowTrailer(placement string) string { return api.AllowTrailer + ": " + placement }
