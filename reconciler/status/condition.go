package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/intern"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A conditionValue is a condition without its type and times.
type conditionValue struct {
	status          metav1.ConditionStatus
	reason, message string
}

// A conditionSet is a set of conditions with the times of their last changes.
type conditionSet struct {
	b      *builder
	before map[string]ledger.Transition
	list   []metav1.Condition
}

// usualConditions is the number of types that nearly all sets have.
const usualConditions = 6

// newConditionSet begins the conditions of a cluster, which is at a position of the plan, or of the placement if the name is empty.
func (b *builder) newConditionSet(cluster string, at int) conditionSet {
	s := conditionSet{b: b}
	if cluster != "" {
		s.list = b.scratch
	}
	if s.list == nil {
		s.list = make([]metav1.Condition, 0, usualConditions)
	}
	switch {
	case b.existing != nil && cluster != "":
		s.before = b.existing.lines.At(at).transitions
	case b.record == nil: // nothing has been decided yet
	case cluster == "":
		s.before = b.record.Transitions
	default:
		if e := b.record.Entry(cluster); e != nil {
			s.before = e.Transitions
		}
	}
	return s
}

func (s *conditionSet) add(typ string, v conditionValue) {
	at := s.b.in.Now
	if s.b.record == nil && (s.b.existing == nil || s.b.existing.undecided) {
		at = s.b.p.Record.Created // the ledger has no time for it
	}
	if was, ok := s.before[typ]; ok && was.Status == string(v.status) {
		at = was.Time
	}
	s.list = append(s.list, metav1.Condition{
		Type: typ, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: s.b.p.Record.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}

// finish returns the conditions. While a report is built, it also records the transitions since the last report; when conditions
// of an existing report are made on demand, there is nothing to record.
func (b *builder) finish(s conditionSet, cluster string) []metav1.Condition {
	if b.record == nil || s.since(s.before) {
		return s.list
	}
	b.transitions = append(b.transitions, Transitions{Key: b.p.Key, Cluster: cluster, To: b.shared.of(&s)})
	return s.list
}

// sharedTransitions are the last transitions that differ. Clusters on which the conditions of placements change at the same times share
// one map.
type sharedTransitions struct {
	intern.Recent[map[string]ledger.Transition]
}

// maxSharedTransitions limits with how many transitions those of a cluster are compared.
const maxSharedTransitions = 32

// of returns the transitions of a set of conditions.
func (all *sharedTransitions) of(s *conditionSet) map[string]ledger.Transition {
	return all.Share(maxSharedTransitions, s.since, func() map[string]ledger.Transition {
		now := make(map[string]ledger.Transition, len(s.list))
		for i := range s.list {
			c := &s.list[i]
			now[c.Type] = ledger.Transition{Status: string(c.Status), Time: c.LastTransitionTime.Time}
		}
		return now
	})
}

// since reports whether the conditions have changed last with some transitions.
func (s *conditionSet) since(last map[string]ledger.Transition) bool {
	if len(s.list) != len(last) {
		return false
	}
	for i := range slices.Backward(s.list) { // the last ones differ first
		c := &s.list[i]
		if was, ok := last[c.Type]; !ok || was.Status != string(c.Status) || !was.Time.Equal(c.LastTransitionTime.Time) {
			return false
		}
	}
	return true
}

// aggregate returns the placement's condition of a type, given the clusters' conditions of that
// type. overridden says whether overrides apply to any cluster.
func aggregate(typ string, n counts, overridden bool) conditionValue {
	texts := aggregated[typ]
	switch {
	case n.unknown > 0:
		return conditionValue{metav1.ConditionUnknown, texts.unknown, fmt.Sprintf(texts.unknownText, n.unknown)}
	case n.no > 0:
		return conditionValue{metav1.ConditionFalse, texts.no, fmt.Sprintf(texts.noText, n.no)}
	case typ == api.Overridden && !overridden:
		return conditionValue{metav1.ConditionTrue, api.NoOverrideSpecified, noOverrideText}
	}
	return conditionValue{metav1.ConditionTrue, texts.yes, fmt.Sprintf(texts.yesText, n.yes)}
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

// Completed is the type of an Outstanding when no condition is outstanding.
const Completed = "Completed"

// Outstanding is the condition that a placement has to reach next.
type Outstanding struct {
	// Type is Completed if all conditions are reached.
	Type string
	// Status and Reason are "nil" if the condition is missing or belongs to an older spec.
	Status, Reason string
}

// OutstandingOf returns the condition that a placement of either kind has to reach next.
func OutstandingOf(object *metav1.ObjectMeta, spec *api.PlacementSpec, conditions []metav1.Condition) Outstanding {
	for _, typ := range append([]string{api.Scheduled}, expected(spec)...) {
		typ = prefix(object.Namespace) + typ
		c := meta.FindStatusCondition(conditions, typ)
		if c == nil || c.ObservedGeneration != object.Generation {
			return Outstanding{typ, "nil", "nil"}
		}
		if c.Status != metav1.ConditionTrue {
			return Outstanding{typ, string(c.Status), c.Reason}
		}
	}
	return Outstanding{Completed, string(metav1.ConditionTrue), Completed}
}

// prefix is the prefix of a placement's condition types.
func prefix(namespace string) string {
	if namespace == "" {
		return api.PlacementPrefix
	}
	return api.ResourcePlacementPrefix
}

// expected are the conditions after Scheduled, in the order of progress.
func expected(spec *api.PlacementSpec) []string {
	if spec.Strategy.ReportsDiff() {
		return expectedWithDiff
	}
	return expectedWithout
}

var (
	expectedWithDiff = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.DiffReported}
	expectedWithout  = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available}
)

// FirstUntrue returns the first condition that is not true, in their order, which is that of
// progress; nil if there is none. With types, it is the first of these, with any prefix.
func FirstUntrue(conditions []metav1.Condition, types ...string) *metav1.Condition {
	for i := range conditions {
		c := &conditions[i]
		of := func(typ string) bool { return strings.HasSuffix(c.Type, typ) }
		if c.Status != metav1.ConditionTrue && (len(types) == 0 || slices.ContainsFunc(types, of)) {
			return c
		}
	}
	return nil
}
