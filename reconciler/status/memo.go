package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Memo keeps from one Build to the next what is told of placements and
// clusters of which there is no news. It changes no answer but which events are
// news, only how long it takes. One goroutine may use it.
type Memo struct {
	placements map[api.PlacementKey]*told
	clusters   map[string]*toldCluster
	usages     usages
	source     Source
	suspended  map[ledger.Subject]ledger.Suspension
	// news are the events since the last report; before has those that were told
	// before the first.
	news   []Event
	before map[EventKey]bool
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{placements: map[api.PlacementKey]*told{}, clusters: map[string]*toldCluster{}}
}

// told is what is said of one placement: one of the two kinds, or neither if it
// is being removed.
type told struct {
	of *plan.Placement

	cluster    *api.ClusterResourcePlacement
	mirror     *api.ClusterResourcePlacementStatus
	namespaced *api.ResourcePlacement
	detail     *Detail
	drifts     []Drift
	question   question
	changed    []Transitions
}

// placement tells of one placement. A plan has the same placement as the one
// before if nothing that matters to it has changed.
func (m *Memo) placement(in Input, p *plan.Placement) *told {
	old := m.placements[p.Key]
	if old != nil && old.of == p {
		return old
	}
	t := &told{of: p}
	if m.placements[p.Key] = t; p.Spec == nil {
		t.detail, t.drifts = detail(p), drifts(p)
		t.keepDetail(old)
		m.tell(old == nil, leaving(p, old, in))
		t.terminate(in, old)
		return t
	}
	b := &builder{Input: in, p: p, record: in.Ledger.Placement(p.Key), old: old}
	s := b.status()
	t.detail, t.drifts, t.changed = detail(p), drifts(p), b.transitions
	m.tell(old == nil, b.happened(old, s, t.drifts))
	t.tell(b.meta(), p, s)
	t.keep(old)
	t.keepDetail(old)
	if t.cluster != nil {
		t.mirror = b.mirror(t.cluster, old.mirrored())
	}
	t.question = newQuestion(p, s)
	return t
}

func (t *told) status() api.PlacementStatus {
	if t.cluster != nil {
		return t.cluster.Status
	}
	return t.namespaced.Status
}

func (t *told) tell(meta metav1.ObjectMeta, p *plan.Placement, s api.PlacementStatus) {
	kind := typeMeta(api.PlacementGroup, p.Key.Kind())
	if p.Key.Namespace == "" {
		t.cluster = &api.ClusterResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: p.Spec.Spec, Status: s}
	} else {
		t.namespaced = &api.ResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: p.Spec.Spec, Status: s}
	}
}

// keep takes over what was told before where it says the same, so that others
// can see by the pointer that it does.
func (t *told) keep(old *told) {
	switch {
	case old == nil || old.of.Spec == nil || t.of.Spec.SpecHash != old.of.Spec.SpecHash:
	case t.cluster != nil:
		if sameMeta(&t.cluster.ObjectMeta, &old.cluster.ObjectMeta) && sameStatus(&t.cluster.Status, &old.cluster.Status) {
			t.cluster = old.cluster
		}
	default:
		if sameMeta(&t.namespaced.ObjectMeta, &old.namespaced.ObjectMeta) && sameStatus(&t.namespaced.Status, &old.namespaced.Status) {
			t.namespaced = old.namespaced
		}
	}
}

func (t *told) keepDetail(old *told) {
	if old != nil && sameDetail(t.detail, old.detail) {
		t.detail = old.detail
	}
}

func (t *told) mirrored() *api.ClusterResourcePlacementStatus {
	if t == nil {
		return nil
	}
	return t.mirror
}

// toldCluster is what is said of one cluster.
type toldCluster struct {
	declared *hub.Cluster
	known    ledger.Declared
	seen     *ledger.Cluster
	// suspended is why nothing is written there; empty if it is.
	suspended string
	// foreign is why nothing is written there, if another fleet holds it.
	foreign string
	object  *api.MemberCluster
}

// next is what is said of the cluster now.
func (t *toldCluster) next(c *hub.Cluster, known ledger.Declared, seen *ledger.Cluster, suspended, foreign string, now time.Time, all *usages) *toldCluster {
	out := cluster(c, known, seen, foreign, now)
	var before *api.MemberCluster
	if t != nil {
		before = t.object
	}
	out.Status.Namespaces = namespaces(seen, before)
	all.share(&out.Status.ResourceUsage)
	if suspended != "" {
		out.Annotations[api.SuspendedAnnotation] = suspended
	}
	return &toldCluster{c, known, seen, suspended, foreign, out}
}

func (m *Memo) cluster(c *hub.Cluster, in Input) *api.MemberCluster {
	old, seen := m.clusters[c.Name], in.Ledger.Cluster(c.Name)
	why := suspended(in, ledger.Subject{Cluster: c.Name})
	known, foreign := in.Ledger.Declared()[clusterID(c.Name)], in.Ledger.Refusal(c.Name)
	if old == nil || old.foreign != foreign || old.declared != c || old.known != known || old.seen != seen || old.suspended != why {
		m.tell(old == nil, metCluster(c.Name, clusterUID(c.Name, known), old, seen, foreign, in.Now))
		old = old.next(c, known, seen, why, foreign, in.Now, &m.usages)
		m.clusters[c.Name] = old
	}
	return old.object
}

// end forgets what is not told any more, and returns the events.
func (m *Memo) end(in Input) []Event {
	m.forget(in)
	m.news = append(m.sourced(in), m.news...)
	suspended := standing(in)
	m.news = append(m.news, suspensionEvents(m.suspended, suspended, in)...)
	m.suspended = suspended
	events := ledger.Record(in.Ledger.Events(), m.news)
	m.news = nil
	return events
}

// sourced says what changed about the repository. Which commit was in force
// before a restart, and which refused, is nothing new.
func (m *Memo) sourced(in Input) []Event {
	was := m.source
	m.source = in.Source
	return slices.DeleteFunc(sourceEvents(was, in.Source, in.Now), func(e Event) bool {
		return (was.InForce.Hash == "" || e.Reason == api.CommitRefused) && m.before[e.Key()]
	})
}

func (m *Memo) forget(in Input) {
	if len(m.placements) > len(in.Plan.Placements) {
		told := make(map[api.PlacementKey]bool, len(in.Plan.Placements))
		for _, p := range in.Plan.Placements {
			told[p.Key] = true
		}
		for _, key := range slices.SortedFunc(maps.Keys(m.placements), comparePlacements) {
			if !told[key] {
				m.news = append(m.news, left(m.placements[key].of, in)...)
				delete(m.placements, key)
			}
		}
	}
	if len(m.clusters) > len(in.Plan.Members) {
		told := make(map[string]bool, len(in.Plan.Members))
		for _, c := range in.Plan.Members {
			told[c.Name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
			if !told[name] {
				m.news = append(m.news, leftCluster(name, m.clusters[name].object.UID, in.Now)...)
				delete(m.clusters, name)
			}
		}
	}
}

func comparePlacements(a, b api.PlacementKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
