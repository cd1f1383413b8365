package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

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

func (s *conditionSet) add(typ string, v conditions.Value) {
	at := s.b.in.Now
	if s.b.record == nil && (s.b.existing == nil || s.b.existing.undecided) {
		at = s.b.p.Record.Created // the ledger has no time for it
	}
	if was, ok := s.before[typ]; ok && was.Status == string(v.Status) {
		at = was.Time
	}
	s.list = append(s.list, metav1.Condition{
		Type: typ, Status: v.Status, Reason: v.Reason, Message: v.Message,
		ObservedGeneration: s.b.p.Record.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}

// finish returns the conditions. While a report is built, it also records the transitions since the last report; when conditions
// of an existing report are made on demand, there is nothing to record.
func (b *builder) finish(s conditionSet, cluster string) []metav1.Condition {
	if b.record == nil || changedLast(s.list, s.before) {
		return s.list
	}
	b.transitions = append(b.transitions, Transitions{Key: b.p.Key, Cluster: cluster, To: b.shared.of(s.list)})
	return s.list
}

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
