package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A verdict is a condition without its type and times.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// A stamped set of conditions remembers when each last changed.
type stamped struct {
	b      *builder
	before map[string]ledger.Transition
	list   []metav1.Condition
}

// stamp begins the conditions of a cluster, or with an empty name those of the
// placement.
func (b *builder) stamp(cluster string) *stamped {
	most := 7 // types of conditions, or a few more
	if b.Conditions == DocumentedConditions {
		most = 10
	}
	s := &stamped{b: b, list: make([]metav1.Condition, 0, most)}
	switch {
	case b.record == nil: // nothing was decided yet
	case cluster == "":
		s.before = b.record.Transitions
	default:
		if e := b.record.Entry(cluster); e != nil {
			s.before = e.Transitions
		}
	}
	return s
}

func (s *stamped) add(typ string, v verdict) {
	at := s.b.Now
	if s.b.record == nil {
		at = s.b.p.Record.Created // the ledger cannot remember it
	}
	if was, ok := s.before[typ]; ok && was.Status == string(v.status) {
		at = was.Time
	}
	s.list = append(s.list, metav1.Condition{
		Type: typ, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: s.b.p.Record.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}

// finish returns the conditions, and notes what changed since the ledger was
// last told.
func (b *builder) finish(s *stamped, cluster string) []metav1.Condition {
	if s.b.record == nil || s.known() {
		return s.list
	}
	now := make(map[string]ledger.Transition, len(s.list))
	for _, c := range s.list {
		now[c.Type] = ledger.Transition{Status: string(c.Status), Time: c.LastTransitionTime.Time}
	}
	b.transitions = append(b.transitions, Transitions{Key: b.p.Key, Cluster: cluster, To: now})
	return s.list
}

// known reports whether the ledger was told of exactly these conditions.
func (s *stamped) known() bool {
	if len(s.list) != len(s.before) {
		return false
	}
	for _, c := range s.list {
		if was, ok := s.before[c.Type]; !ok || was.Status != string(c.Status) || !was.Time.Equal(c.LastTransitionTime.Time) {
			return false
		}
	}
	return true
}

// counts are how many clusters have a condition in each state.
type counts struct{ yes, no, unknown int }

func tally(clusters []api.PerClusterPlacementStatus, typ string) counts {
	var n counts
	for _, c := range clusters {
		if c.ClusterName == "" {
			continue
		}
		for _, cond := range c.Conditions {
			switch {
			case cond.Type != typ:
			case cond.Status == metav1.ConditionTrue:
				n.yes++
			case cond.Status == metav1.ConditionFalse:
				n.no++
			default:
				n.unknown++
			}
		}
	}
	return n
}

// account words the three states of one condition of a placement.
type account struct {
	unknown, unknownText string
	no, noText           string
	yes, yesText         string
}

func (a account) of(n counts, _ bool) verdict {
	switch {
	case n.unknown > 0:
		return verdict{metav1.ConditionUnknown, a.unknown, fmt.Sprintf(a.unknownText, n.unknown)}
	case n.no > 0:
		return verdict{metav1.ConditionFalse, a.no, fmt.Sprintf(a.noText, n.no)}
	default:
		return verdict{metav1.ConditionTrue, a.yes, fmt.Sprintf(a.yesText, n.yes)}
	}
}

// overall turns the account of the clusters into the placement's condition.
var overall = map[string]func(n counts, overridden bool) verdict{
	api.RolloutStarted: account{
		api.RolloutStartedUnknown, "There are still %d cluster(s) in the process of deciding whether to roll out the latest resources or not",
		api.RolloutNotStartedYet, "The rollout is being blocked by the rollout strategy in %d cluster(s)",
		api.RolloutStartedReason, "All %d cluster(s) start rolling out the latest resource",
	}.of,
	api.Overridden: func(n counts, overridden bool) verdict {
		if n.unknown+n.no == 0 && !overridden {
			return verdict{metav1.ConditionTrue, api.NoOverrideSpecified, "No override rules are configured for the selected resources"}
		}
		return account{
			api.OverriddenPending, "There are still %d cluster(s) in the process of overriding the selected resources if there is any override defined",
			api.OverriddenFailed, "Failed to override resources in %d cluster(s)",
			api.OverriddenSucceeded, "The selected resources are successfully overridden in %d cluster(s)",
		}.of(n, overridden)
	},
	api.WorkSynchronized: account{
		api.WorkSynchronizedUnknown, "There are still %d cluster(s) in the process of creating or updating the work object(s) in the hub cluster",
		api.WorkNotSynchronizedYet, "There are %d cluster(s) which have not finished creating or updating work(s) yet",
		api.WorkSynchronizedReason, "Work(s) are successfully created or updated in %d target cluster(s)' namespaces",
	}.of,
	api.Applied: account{
		api.ApplyPending, "There are still %d cluster(s) in the process of applying the resources on the member cluster",
		api.ApplyFailed, "Failed to apply resources to %d cluster(s), please check the `failedPlacements` status",
		api.ApplySucceeded, "The selected resources are successfully applied to %d cluster(s)",
	}.of,
	api.Available: account{
		api.ResourceAvailableUnknown, "There are still %d cluster(s) in the process of checking the availability of the selected resources",
		api.ResourceNotAvailableYet, "The selected resources in %d cluster(s) are still not available yet",
		api.ResourceAvailable, "The selected resources in %d cluster(s) are available now",
	}.of,
	api.DiffReported: account{
		api.DiffReportingPending, "There are still %d cluster(s) in the process of checking for configuration differences",
		api.DiffReportingIncompleteOrFailed, "Diff reporting in %d clusters is still in progress or has failed",
		api.DiffReportingCompleted, "Diff reporting in %d cluster(s) has been completed",
	}.of,
}
