// Package status reports the state of the fleet in KubeFleet's terms.
//
// Build turns a plan and the ledger into a Report. It makes no decisions and computes
// everything from its input each time, so that a status cannot get stuck.
//
// Most of a report is about placements on single clusters, and is rarely read. Build makes only summaries of that;
// Report.Whole, Only, On, Each and OnDemand make the rest from the plan, to which a report refers.
package status

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/membercluster"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// Build builds a report.
func Build(in Input) *Report { return NewMemo().Build(in) }

// A Memo keeps the reports of unchanged placements and clusters between calls of its method Build. It
// affects only which events are new and how long a call takes. It must not be used
// concurrently.
type Memo struct {
	placements map[api.PlacementKey]*placementEntry
	clusters   map[string]*clusterEntry
	last       Report            // has the lists of the last report, which the next one shares if they are the same
	namespaces map[string]string // of the cluster that was reported last
	read       readState
	evictions  map[string]*api.ClusterResourcePlacementEviction
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

// Build builds the report. Parts that have not changed since the Memo was last used are shared
// with the previous report.
func (m *Memo) Build(in Input) *Report {
	m.setEarlierEvents(in.Ledger.Events())
	suspended := suspensions(in)
	r := &Report{
		At: in.Now, Source: in.Source, Fleet: in.Ledger.Fleet(), InForce: in.InForce, Declared: in.Ledger.Declared(), Suspensions: suspended,
		Clusters: m.memberClusters(in, suspended), plan: in.Plan,
	}
	if in.InForce != nil {
		r.Source.Warnings = append(slices.Clip(in.InForce.Warnings), in.Plan.Warnings...)
	}
	lists := newLists(&m.last, in.Plan.Placements)
	for p := range in.Plan.Placements.Values() {
		if p.Forget {
			m.forget(in, p)
			continue
		}
		e := lists.next()
		if e == nil || e.of != p {
			e = m.placement(in, p)
		}
		lists.add(e)
		r.Drifts = append(r.Drifts, e.drifts...)
		if e.changed != nil { // an entry of an earlier report is read concurrently and never changed
			r.Transitions = append(r.Transitions, e.changed...)
			e.changed = nil // transitions are reported once
		}
	}
	lists.set(r)
	m.last = Report{Clusters: r.Clusters, Details: r.Details, entries: r.entries}
	m.stagedObjects(in, r)
	r.Evictions = m.evictionObjects(in)
	r.Events = m.finish(in)
	return r
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
	return e
}

// forget ends the reports of a placement of which nothing is left.
func (m *Memo) forget(in Input, p *plan.Placement) {
	old := m.placements[p.Key]
	if old == nil || !old.of.Forget { // the plan may be made again before it is saved
		m.addEvents(old == nil, removedEvents(p, in))
		m.placements[p.Key] = &placementEntry{of: p}
	}
}

// A clusterEntry is the report of one cluster, and what it was made from.
type clusterEntry struct {
	membercluster.Input
	object *api.MemberCluster
}

// A readState is what the last report of the clusters was made of.
type readState struct {
	members []*hub.Cluster
	ledger  *ledger.Ledger
	version uint64 // of the records of clusters
	// suspended are the suspensions in force.
	suspended []Suspension
}

// memberClusters returns the reports of the member clusters, by name. Only those are looked at that may have changed since
// the last report.
func (m *Memo) memberClusters(in Input, suspended []Suspension) []*api.MemberCluster {
	names, version, complete := ledger.ClustersSince(in.Ledger, m.read.version)
	last := m.read
	m.read = readState{in.Plan.Members, in.Ledger, version, suspended}
	reports := sharedlist.Like(m.last.Clusters)
	if !complete || last.ledger != in.Ledger || !ledger.Identical(last.members, in.Plan.Members) || !slices.Equal(last.suspended, suspended) {
		for _, c := range in.Plan.Members {
			reports.Add(m.cluster(c, in))
		}
		return reports.Slice()
	}
	out, owned := m.last.Clusters, false
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i, declared := slices.BinarySearchFunc(in.Plan.Members, name, func(c *hub.Cluster, name string) int { return strings.Compare(c.Name, name) })
		if !declared {
			continue
		}
		if now := m.cluster(in.Plan.Members[i], in); now != out[i] {
			if !owned {
				out, owned = slices.Clone(out), true
			}
			out[i] = now
		}
	}
	return out
}

// cluster returns the report of one member cluster.
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
	sharable := []map[string]string{m.namespaces, nil}
	if old != nil {
		before, sharable[1] = &old.Input, old.object.Status.Namespaces
	}
	m.addEvents(old == nil, now.Events(before, in.Now))
	next := &clusterEntry{now, now.Object(in.Now, sharable...)}
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
		delete(m.placements, key)
	}
	for _, name := range missingKeys(m.clusters, slices.Values(in.Plan.Members), len(in.Plan.Members), func(c *hub.Cluster) string { return c.Name }, strings.Compare) {
		m.newEvents = append(m.newEvents, membercluster.LeftEvents(name, m.clusters[name].object.UID, in.Now)...)
		delete(m.clusters, name)
	}
	added := m.newEvents
	m.newEvents = nil
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
