package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/intern"
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
