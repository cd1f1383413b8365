package status

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/membercluster"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// A Memo keeps the reports of unchanged placements and clusters between calls of Build. It
// affects only which events are new and how long a call takes. It must not be used
// concurrently.
type Memo struct {
	placements map[api.PlacementKey]*placementEntry
	clusters   map[string]*clusterEntry
	last       Report            // has the lists of the last report, which the next one shares if they are the same
	namespaces map[string]string // of the cluster that was reported last
	evictions  map[string]*api.ClusterResourcePlacementEviction
	source     Source
	suspended  map[ledger.Subject]ledger.Suspension
	unplaced   unplacedObjects
	newEvents  []Event           // since the last report
	recorded   map[EventKey]bool // the events that an earlier process recorded
	// transitions are the last ones of clusters, of all placements.
	transitions sharedTransitions
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{placements: map[api.PlacementKey]*placementEntry{}, clusters: map[string]*clusterEntry{}}
}

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
	scheduling scheduling
	changed    []Transitions
}

// placement returns the report of one placement. If nothing that matters to a placement has
// changed, it is the same pointer in two plans.
func (m *Memo) placement(in Input, p *plan.Placement) *placementEntry {
	old := m.placements[p.Key]
	if old != nil && old.of == p {
		return old
	}
	b := &builder{in: in, p: p, record: in.Ledger.Placement(p.Key), old: old, earlier: old.comparable(p), shared: &m.transitions}
	e := b.entry()
	m.placements[p.Key] = e
	if p.Spec == nil {
		m.addEvents(old == nil, b.deletedEvents(old))
		e.reuse(old, true)
		return e
	}
	e.changed = b.transitions
	m.addEvents(old == nil, b.events(e.status(), e.drifts))
	e.runs, e.requests = updaterun.Objects(p, in.Ledger.Declared(), in.Now)
	same := lineBuilder{b}.sameClusters()
	e.reuse(old, same)
	switch {
	case e.cluster != nil && same:
		e.mirror = b.mirror(e.cluster, old)
	case e.cluster != nil:
		e.mirror = b.mirror(e.cluster, nil)
	}
	e.scheduling = newScheduling(p, e.status())
	return e
}

// entry returns the report of the placement without runs, and what has changed in the builder.
func (b *builder) entry() *placementEntry {
	e := &placementEntry{of: b.p, at: b.in.Now, conditions: b.in.Conditions, undecided: b.record == nil, detail: b.detail(), drifts: drifts(b.p, lineBuilder{b}.clustersWith(isDrifted)...)}
	if b.p.Spec == nil {
		b.terminate(e)
		return e
	}
	s := b.status()
	e.lines, e.unanswered, e.missingSince = lineBuilder{b}.lines().List(), b.unanswered, b.missingSince()
	e.set(b.meta(), b.p.Spec.Spec, s)
	return e
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

func reuse[T any](now **T, old *T) {
	if reflect.DeepEqual(*now, old) {
		*now = old
	}
}

// A clusterEntry is the report of one cluster, and what it was made from.
type clusterEntry struct {
	membercluster.Input
	object *api.MemberCluster
}

func (m *Memo) cluster(c *hub.Cluster, in Input) *api.MemberCluster {
	now := membercluster.Input{
		Declared: c, Known: in.Ledger.Declared()[metadata.ClusterID(c.Name)], Seen: in.Ledger.Cluster(c.Name),
		Suspended: suspended(in, ledger.Subject{Cluster: c.Name}), Refusal: in.Ledger.Refusal(c.Name), SameAs: in.Ledger.SameAs(c.Name),
	}
	now.Cordoned = suspended(in, ledger.Subject{Cluster: c.Name, Effect: ledger.Cordons}) != ""
	old := m.clusters[c.Name]
	if old != nil && old.Input == now {
		return old.object
	}
	var before *membercluster.Input
	alike := []map[string]string{m.namespaces, nil}
	if old != nil {
		before, alike[1] = &old.Input, old.object.Status.Namespaces
	}
	m.addEvents(old == nil, now.Events(before, in.Now))
	next := &clusterEntry{now, now.Object(in.Now, alike...)}
	m.namespaces = next.object.Status.Namespaces
	if old != nil {
		reuse(&next.object, old.object)
	}
	m.clusters[c.Name] = next
	return next.object
}

// setEarlierEvents sets the events that an earlier process recorded.
func (m *Memo) setEarlierEvents(earlier []Event) {
	if m.recorded != nil {
		return
	}
	m.recorded = make(map[EventKey]bool, len(earlier))
	for i := range earlier {
		m.recorded[earlier[i].Key()] = true
	}
}

// addEvents adds new events. If an object is reported for the first time since the start, an
// earlier process may have recorded the same events.
func (m *Memo) addEvents(first bool, events []Event) {
	if first {
		events = slices.DeleteFunc(events, func(e Event) bool { return m.recorded[e.Key()] })
	}
	m.newEvents = append(m.newEvents, events...)
}

// finish drops what is no longer reported, and returns the events.
func (m *Memo) finish(in Input) []Event {
	for _, key := range missingKeys(m.placements, in.Plan.Placements.Values(), in.Plan.Placements.Len(), func(p *plan.Placement) api.PlacementKey { return p.Key }, api.PlacementKey.Compare) {
		m.newEvents = append(m.newEvents, removedEvents(m.placements[key].of, in)...)
		delete(m.placements, key)
	}
	for _, name := range missingKeys(m.clusters, slices.Values(in.Plan.Members), len(in.Plan.Members), func(c *hub.Cluster) string { return c.Name }, strings.Compare) {
		m.newEvents = append(m.newEvents, membercluster.LeftEvents(name, m.clusters[name].object.UID, in.Now)...)
		delete(m.clusters, name)
	}
	// Commits that were in force or refused before a restart are not changes.
	fromSource := slices.DeleteFunc(sourceEvents(m.source, in.Source, in.Now), func(e Event) bool {
		return (m.source.InForce.Hash == "" || e.Reason == api.CommitRefused) && m.recorded[e.Key()]
	})
	suspended := suspensionsInForce(in)
	added := slices.Concat(fromSource, m.newEvents, suspensionEvents(m.suspended, suspended, in))
	m.source, m.suspended, m.newEvents = in.Source, suspended, nil
	return ledger.AppendEvents(in.Ledger.Events(), added)
}

// missingKeys returns the keys of known that a list with n items does not have, sorted. known has all items of the list.
func missingKeys[K comparable, V, T any](known map[K]V, list iter.Seq[T], n int, key func(T) K, compare func(a, b K) int) []K {
	if len(known) == n {
		return nil
	}
	rest := maps.Clone(known)
	for item := range list {
		delete(rest, key(item))
	}
	return slices.SortedFunc(maps.Keys(rest), compare)
}
