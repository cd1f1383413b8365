package status

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A Memo keeps the reports of unchanged placements and clusters between calls of Build. It
// affects only which events are new and how long a call takes. It must not be used
// concurrently.
type Memo struct {
	placements map[api.PlacementKey]*placementEntry
	clusters   map[string]*clusterEntry
	usages     usages
	source     Source
	suspended  map[ledger.Subject]ledger.Suspension
	// newEvents are the events since the last report; before has those recorded by an earlier
	// process.
	newEvents []Event
	before    map[EventKey]bool
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{placements: map[api.PlacementKey]*placementEntry{}, clusters: map[string]*clusterEntry{}}
}

// A placementEntry is the report of one placement, of one of the two kinds, or of neither if it
// is being removed.
type placementEntry struct {
	of *plan.Placement

	cluster    *api.ClusterResourcePlacement
	mirror     *api.ClusterResourcePlacementStatus
	namespaced *api.ResourcePlacement
	detail     *Detail
	drifts     []Drift
	question   scheduling
	changed    []Transitions
}

// placement returns the report of one placement. If nothing that matters to a placement has
// changed, it is the same pointer in two plans.
func (m *Memo) placement(in Input, p *plan.Placement) *placementEntry {
	old := m.placements[p.Key]
	if old != nil && old.of == p {
		return old
	}
	t := &placementEntry{of: p}
	if m.placements[p.Key] = t; p.Spec == nil {
		t.detail, t.drifts = detail(p), drifts(p)
		t.reuseDetail(old)
		m.addEvents(old == nil, deletedEvents(p, old, in))
		t.terminate(in, old)
		return t
	}
	b := &builder{Input: in, p: p, record: in.Ledger.Placement(p.Key), old: old}
	s := b.status()
	t.detail, t.drifts, t.changed = detail(p), drifts(p), b.transitions
	m.addEvents(old == nil, b.events(old, s, t.drifts))
	t.set(b.meta(), p, s)
	t.reuse(old)
	t.reuseDetail(old)
	if t.cluster != nil {
		t.mirror = b.mirror(t.cluster, old.mirrored())
	}
	t.question = newScheduling(p, s)
	return t
}

func (e *placementEntry) status() api.PlacementStatus {
	if e.cluster != nil {
		return e.cluster.Status
	}
	return e.namespaced.Status
}

func (e *placementEntry) set(meta metav1.ObjectMeta, p *plan.Placement, s api.PlacementStatus) {
	kind := typeMeta(api.PlacementGroup, p.Key.Kind())
	if p.Key.Namespace == "" {
		e.cluster = &api.ClusterResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: p.Spec.Spec, Status: s}
	} else {
		e.namespaced = &api.ResourcePlacement{TypeMeta: kind, ObjectMeta: meta, Spec: p.Spec.Spec, Status: s}
	}
}

// reuse replaces equal parts by those of the previous report, so that others can compare
// pointers.
func (e *placementEntry) reuse(old *placementEntry) {
	switch {
	case old == nil || old.of.Spec == nil || e.of.Spec.SpecHash != old.of.Spec.SpecHash:
	case e.cluster != nil:
		if sameMeta(&e.cluster.ObjectMeta, &old.cluster.ObjectMeta) && sameStatus(&e.cluster.Status, &old.cluster.Status) {
			e.cluster = old.cluster
		}
	default:
		if sameMeta(&e.namespaced.ObjectMeta, &old.namespaced.ObjectMeta) && sameStatus(&e.namespaced.Status, &old.namespaced.Status) {
			e.namespaced = old.namespaced
		}
	}
}

func (e *placementEntry) reuseDetail(old *placementEntry) {
	if old != nil && sameDetail(e.detail, old.detail) {
		e.detail = old.detail
	}
}

func (e *placementEntry) mirrored() *api.ClusterResourcePlacementStatus {
	if e == nil {
		return nil
	}
	return e.mirror
}

// A clusterEntry is the report of one cluster.
type clusterEntry struct {
	declared *hub.Cluster
	known    ledger.Declared
	seen     *ledger.Cluster
	// suspended is why nothing is written to the cluster; empty if it is.
	suspended string
	// foreign is why nothing is written to the cluster, if another fleet holds it.
	foreign string
	object  *api.MemberCluster
}

// next returns the new report of the cluster.
func (e *clusterEntry) next(c *hub.Cluster, known ledger.Declared, seen *ledger.Cluster, suspended, foreign string, now time.Time, all *usages) *clusterEntry {
	out := cluster(c, known, seen, foreign, now)
	var before *api.MemberCluster
	if e != nil {
		before = e.object
	}
	out.Status.Namespaces = namespaces(seen, before)
	all.share(&out.Status.ResourceUsage)
	if suspended != "" {
		out.Annotations[api.SuspendedAnnotation] = suspended
	}
	return &clusterEntry{c, known, seen, suspended, foreign, out}
}

func (m *Memo) cluster(c *hub.Cluster, in Input) *api.MemberCluster {
	old, seen := m.clusters[c.Name], in.Ledger.Cluster(c.Name)
	why := suspended(in, ledger.Subject{Cluster: c.Name})
	known, foreign := in.Ledger.Declared()[clusterID(c.Name)], in.Ledger.Refusal(c.Name)
	if old == nil || old.foreign != foreign || old.declared != c || old.known != known || old.seen != seen || old.suspended != why {
		m.addEvents(old == nil, memberEvents(c.Name, clusterUID(c.Name, known), old, seen, foreign, in.Now))
		old = old.next(c, known, seen, why, foreign, in.Now, &m.usages)
		m.clusters[c.Name] = old
	}
	return old.object
}

// finish drops what is no longer reported, and returns the events.
func (m *Memo) finish(in Input) []Event {
	m.forget(in)
	m.newEvents = append(m.repositoryEvents(in), m.newEvents...)
	suspended := suspensionsInForce(in)
	m.newEvents = append(m.newEvents, suspensionEvents(m.suspended, suspended, in)...)
	m.suspended = suspended
	events := ledger.AppendEvents(in.Ledger.Events(), m.newEvents)
	m.newEvents = nil
	return events
}

// repositoryEvents returns events about the changes of the repository. Commits that were in
// force or refused before a restart are not changes.
func (m *Memo) repositoryEvents(in Input) []Event {
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
		for _, key := range slices.SortedFunc(maps.Keys(m.placements), api.PlacementKey.Compare) {
			if !told[key] {
				m.newEvents = append(m.newEvents, removedEvents(m.placements[key].of, in)...)
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
				m.newEvents = append(m.newEvents, memberLeftEvents(name, m.clusters[name].object.UID, in.Now)...)
				delete(m.clusters, name)
			}
		}
	}
}
