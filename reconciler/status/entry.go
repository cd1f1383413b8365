package status

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/intern"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// A placementEntry is the report of one placement, of one of the two kinds, or of neither if it
// is being removed. Its objects have nothing about clusters, which is made of the plan and the lines when it is asked for.
type placementEntry struct {
	of    *plan.Placement
	lines sharedlist.List[line] // of the clusters, in the order of the plan; empty if it is being removed
	// unanswered are the reasons why clusters that have not reported yet do not answer.
	unanswered map[string]string
	// at is when the report was made, with certain names of conditions. undecided says that nothing was recorded in the ledger yet.
	at           time.Time
	conditions   Conditions
	undecided    bool
	missingSince time.Time

	cluster    *api.ClusterResourcePlacement
	mirror     *api.ClusterResourcePlacementStatus
	namespaced *api.ResourcePlacement
	detail     *Detail
	runs       []*api.ClusterStagedUpdateRun
	requests   []*api.ClusterApprovalRequest
	drifts     []Drift
	changed    []Transitions
}

func (e *placementEntry) status() api.PlacementStatus {
	if e.cluster != nil {
		return e.cluster.Status
	}
	return e.namespaced.Status
}

// set makes the object of the placement.
func (e *placementEntry) set(meta metav1.ObjectMeta, spec api.PlacementSpec, s api.PlacementStatus) {
	kind := metadata.Type(api.PlacementGroup, e.of.Key.Kind())
	if e.of.Key.Namespace == "" {
		e.cluster = &api.ClusterResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: spec, Status: s}
	} else {
		e.namespaced = &api.ResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: spec, Status: s}
	}
}

// reuse replaces equal parts by those of the previous report, so that others can compare
// pointers. sameClusters says that the status says the same of the clusters.
func (e *placementEntry) reuse(old *placementEntry, sameClusters bool) {
	if old != nil {
		if sameClusters {
			reuse(&e.cluster, old.cluster)
			reuse(&e.namespaced, old.namespaced)
		}
		reuse(&e.detail, old.detail)
		reuseAll(e.runs, old.runs)
		reuseAll(e.requests, old.requests)
	}
}

// reuseAll replaces objects by equal ones of the previous report.
func reuseAll[T any, P interface {
	*T
	metav1.Object
}](now, old []P) {
	for i, n := range now {
		for _, o := range old {
			if o.GetName() == n.GetName() && reflect.DeepEqual(n, o) {
				now[i] = o
			}
		}
	}
}

// reuseValues replaces the values of a map by equal ones of the previous report.
func reuseValues[K comparable, T any](now, old map[K]*T) {
	for k, n := range now {
		reuse(&n, old[k])
		now[k] = n
	}
}

// reuse replaces an object by an equal one of the previous report.
func reuse[T any](now **T, old *T) {
	if reflect.DeepEqual(*now, old) {
		*now = old
	}
}

// comparable returns the report, which may be nil, if what it says of a cluster depends on nothing else of the placement
// than the plan p does, so that a cluster whose plan is the same is reported as there; nil otherwise.
func (e *placementEntry) comparable(p *plan.Placement) *placementEntry {
	plain := func(p *plan.Placement) bool {
		return p.Spec != nil && !p.Pending && p.InternalError == "" && p.Selection.Invalid == "" && p.Spec.Spec.Strategy.Type != api.External
	}
	if e == nil || !plain(e.of) || !plain(p) {
		return nil
	}
	was, is := &e.of.Record, &p.Record
	if e.of.Spec != p.Spec || was.Generation != is.Generation || was.Index != is.Index || !ledger.Identical(was.Revisions, is.Revisions) {
		return nil
	}
	return e
}

// A line is what a report keeps of a placement on one cluster. All else that it says of the cluster is made from the plan when
// somebody asks for it.
type line struct {
	// reason is why the scheduler has selected the cluster, and selected that it has; from the others the placement is removed.
	reason string
	// transitions are the last changes of its conditions.
	transitions map[string]ledger.Transition
	statuses    statuses
	facts       facts
	selected    bool
}

// statuses are the statuses of the conditions of summedUp, two bits for each; zero for a condition that is missing.
type statuses uint16

const (
	isTrue statuses = 1 + iota
	isFalse
	isUnknown
)

// summedUp are the types of conditions that a placement sums up over its clusters.
var summedUp = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available, api.DiffReported}

func statusesOf(conditions []metav1.Condition) (out statuses) {
	for i, typ := range summedUp {
		c := meta.FindStatusCondition(conditions, typ)
		if c == nil {
			continue
		}
		switch c.Status {
		case metav1.ConditionTrue:
			out |= isTrue << (2 * i)
		case metav1.ConditionFalse:
			out |= isFalse << (2 * i)
		case metav1.ConditionUnknown:
			out |= isUnknown << (2 * i)
		}
	}
	return out
}

// anyUntrue reports whether a condition is false or unknown.
func (s statuses) anyUntrue() bool { return s&0xaaaa != 0 }

// of returns the status of the condition of a type in summedUp; zero if it is missing.
func (s statuses) of(typ string) statuses { return s >> (2 * slices.Index(summedUp, typ)) & 3 }

// facts are what a report sums up of a placement on a cluster, beside the statuses of conditions, or finds the cluster by.
type facts uint8

const (
	isUpdated facts = 1 << iota // the placement stays there, and has applied its newest content
	isDrifted                   // there are drifts
	isBlocked                   // deletions are blocked
	isSilent                    // the member has not reported about the assigned revision
)

// Transitions are the times when the conditions of a placement, or of a placement on one
// cluster, last changed.
type Transitions struct {
	Key     api.PlacementKey
	Cluster string // empty for the placement itself
	To      map[string]ledger.Transition
}

// sharedTransitions are the last transitions that differ. Clusters on which the conditions of placements change at the same times share
// one map.
type sharedTransitions struct {
	intern.Recent[map[string]ledger.Transition]
}

// maxSharedTransitions limits with how many transitions those of a cluster are compared.
const maxSharedTransitions = 32

// of returns the transitions of a set of conditions.
func (all *sharedTransitions) of(conditions []metav1.Condition) map[string]ledger.Transition {
	same := func(known map[string]ledger.Transition) bool { return changedLast(conditions, known) }
	return all.Share(maxSharedTransitions, same, func() map[string]ledger.Transition {
		now := make(map[string]ledger.Transition, len(conditions))
		for i := range conditions {
			c := &conditions[i]
			now[c.Type] = ledger.Transition{Status: string(c.Status), Time: c.LastTransitionTime.Time}
		}
		return now
	})
}

// changedLast reports whether conditions have changed last with some transitions.
func changedLast(conditions []metav1.Condition, last map[string]ledger.Transition) bool {
	if len(conditions) != len(last) {
		return false
	}
	for i := range slices.Backward(conditions) { // the last ones differ first
		c := &conditions[i]
		if was, ok := last[c.Type]; !ok || was.Status != string(c.Status) || !was.Time.Equal(c.LastTransitionTime.Time) {
			return false
		}
	}
	return true
}
