// Package ledger remembers what was decided and what was seen.
//
// A Ledger is the memory of the loop: which clusters each placement holds,
// which revision each was told to have, and what the members last said. One
// goroutine owns it. Fold takes in what was seen; the loop writes down what it
// decided; a Store keeps both over a restart.
package ledger

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Ledger is not safe for concurrent use.
type Ledger struct {
	head       string
	clusters   map[string]*Cluster
	placements map[api.PlacementKey]*Placement
	// dirty are the records to save, by their key in the store.
	dirty map[string]struct{}
}

// A Cluster is what is known of a member cluster.
type Cluster struct {
	ClusterSeen
	// Since is when Healthy last changed.
	Since time.Time
	// LastSeen is when the cluster last answered; zero if it never did.
	LastSeen time.Time
	// Joined is when it first answered.
	Joined time.Time
}

// A Placement is what is known of a placement, apart from its bindings.
type Placement struct {
	// Generation counts the changes of the canonical spec from 1.
	Generation int64
	SpecHash   string
	// Created is the time of the commit that brought the placement.
	Created time.Time
	// Index counts the distinct contents from 0; Content is the newest's hash.
	Index   int
	Content string
	// Trigger is the digest of what the scheduler last looked at.
	Trigger string
	// Transitions remember by type when each condition of the placement last
	// changed.
	Transitions map[string]Transition `json:",omitempty"`
	// Deleted says that the placement is gone from Git and is being removed.
	Deleted bool
	// Abandon says that what it placed stays where it is once it is gone.
	Abandon bool

	entries map[string]*Entry
}

// A Transition is the last change of one condition.
type Transition struct {
	Status string
	Time   time.Time
}

// An Entry is one placement on one cluster: what was decided and what was seen.
type Entry struct {
	Binding placement.Binding
	// Seen is nil until the member has reported.
	Seen *WorkSeen
	// AvailableSince is when what is assigned became available; zero if it is
	// not.
	AvailableSince time.Time
	// Previous is the revision that was available here before Assigned; it is
	// what a failed update is measured against.
	Previous placement.Revision
	// Transitions remember by type when each condition of the placement on this
	// cluster last changed.
	Transitions map[string]Transition `json:",omitempty"`
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{
		clusters:   map[string]*Cluster{},
		placements: map[api.PlacementKey]*Placement{},
		dirty:      map[string]struct{}{},
	}
}

// Head is the commit that was in force last; empty if none ever was.
func (l *Ledger) Head() string { return l.head }

// SetHead writes down which commit is in force.
func (l *Ledger) SetHead(commit string) {
	if l.head != commit {
		l.head = commit
		l.touch(headKey)
	}
}

// Empty reports whether nothing is known at all.
func (l *Ledger) Empty() bool { return len(l.clusters)+len(l.placements) == 0 }

// Cluster returns what is known of a cluster; nil if nothing is.
func (l *Ledger) Cluster(name string) *Cluster { return l.clusters[name] }

// Clusters returns the names of all clusters known, sorted.
func (l *Ledger) Clusters() []string { return slices.Sorted(maps.Keys(l.clusters)) }

// Placement returns what is known of a placement; nil if nothing is.
func (l *Ledger) Placement(key api.PlacementKey) *Placement { return l.placements[key] }

// Placements returns the keys of all placements known, sorted.
func (l *Ledger) Placements() []api.PlacementKey {
	return slices.SortedFunc(maps.Keys(l.placements), func(a, b api.PlacementKey) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Entries returns a placement's entries, sorted by cluster. They are to be read
// only.
func (p *Placement) Entries() []*Entry {
	out := slices.Collect(maps.Values(p.entries))
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.Binding.Cluster, b.Binding.Cluster) })
	return out
}

// Entry returns the entry of one cluster; nil if the placement does not hold it.
func (p *Placement) Entry(cluster string) *Entry { return p.entries[cluster] }

// Bindings returns copies of a placement's bindings, sorted by cluster.
func (p *Placement) Bindings() []placement.Binding {
	out := make([]placement.Binding, 0, len(p.entries))
	for _, e := range p.Entries() {
		out = append(out, e.Binding)
	}
	return out
}

// Note writes down what is known of a placement itself. Its entries stay.
func (l *Ledger) Note(key api.PlacementKey, p Placement) {
	if old := l.placements[key]; old != nil {
		p.entries = old.entries
	} else {
		p.entries = map[string]*Entry{}
	}
	l.placements[key] = &p
	l.touch(placementKey(key))
}

// Bind writes down a binding, new or changed. The placement must be known.
func (l *Ledger) Bind(key api.PlacementKey, b placement.Binding) {
	p := l.placements[key]
	e := p.entries[b.Cluster]
	switch {
	case e == nil:
		p.entries[b.Cluster] = &Entry{Binding: b}
	case e.Binding.Assigned != b.Assigned:
		next := &Entry{Binding: b, Seen: e.Seen, Previous: e.Previous, Transitions: e.Transitions}
		if !e.AvailableSince.IsZero() {
			next.Previous = e.Binding.Assigned
		}
		p.entries[b.Cluster] = next
	default:
		next := *e
		next.Binding = b
		p.entries[b.Cluster] = &next
	}
	l.touch(entryKey(key, b.Cluster))
}

// Unbind forgets that a placement holds a cluster.
func (l *Ledger) Unbind(key api.PlacementKey, cluster string) {
	if p := l.placements[key]; p != nil {
		delete(p.entries, cluster)
		l.touch(entryKey(key, cluster))
	}
}

// Transit writes down that conditions changed: of the placement itself, or, if
// cluster is not empty, of the placement there.
func (l *Ledger) Transit(key api.PlacementKey, cluster string, to map[string]Transition) {
	p := l.placements[key]
	switch {
	case p == nil:
	case cluster == "":
		next := *p
		next.Transitions = to
		l.placements[key] = &next
		l.touch(placementKey(key))
	case p.entries[cluster] != nil:
		next := *p.entries[cluster]
		next.Transitions = to
		p.entries[cluster] = &next
		l.touch(entryKey(key, cluster))
	}
}

// Forget forgets a placement and all its entries.
func (l *Ledger) Forget(key api.PlacementKey) {
	p := l.placements[key]
	if p == nil {
		return
	}
	for cluster := range p.entries {
		l.touch(entryKey(key, cluster))
	}
	delete(l.placements, key)
	l.touch(placementKey(key))
}

// ForgetCluster forgets a cluster that has left. Entries on it stay.
func (l *Ledger) ForgetCluster(name string) {
	delete(l.clusters, name)
	l.touch(clusterKey(name))
}

func (l *Ledger) touch(key string) { l.dirty[key] = struct{}{} }
