// Package ledger remembers what was decided and what was seen.
//
// A Ledger is the memory of the loop: which clusters each placement holds,
// which revision each was told to have, and what the members last said. One
// goroutine owns it. Fold takes in what was seen; the loop writes down what it
// decided; a Store keeps both over a restart.
package ledger

import (
	"cmp"
	"iter"
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
	fleet      fleetRecord
	clusters   map[string]*Cluster
	placements map[api.PlacementKey]*Placement
	// suspensions are what people want left alone.
	suspensions map[Subject]Suspension
	// declared is what is known of what the commit in force has.
	declared map[api.ID]Declared
	// events are what was told, told the same by key; number is the newest's.
	events []Event
	told   map[string]numbered
	number uint64
	// dirty are the records to save, by their key in the store; pressing says that
	// there are decisions among them.
	dirty    map[string]struct{}
	pressing bool
	// comings counts the placements that came or went.
	comings uint64
	// changes counts what a plan could see change.
	changes uint64
}

// A Cluster is what is known of a member cluster.
type Cluster struct {
	ClusterSeen
	// Since is when Healthy last changed.
	Since time.Time
	// ForbiddenSince is since when permissions are missing; zero if none is.
	ForbiddenSince time.Time `json:",omitzero"`
	// LastSeen is when the cluster last answered; zero if it never did.
	LastSeen time.Time
	// Observed is when Properties were last read.
	Observed time.Time
	// Joined is when it first answered.
	Joined time.Time
	// Rivals are the owners of inventories there that are not this fleet's. As long
	// as there are any, nothing is written to the cluster.
	Rivals []Owner `json:",omitempty"`

	version uint64
}

// Version changes whenever anything about the cluster does but when it was
// looked at. It means nothing after a restart.
func (c *Cluster) Version() uint64 { return c.version }

// Denied says which permissions are missing and what to do about it. It is empty if none
// is known to be missing; so it is for a nil Cluster.
func (c *Cluster) Denied() string {
	if c == nil || len(c.Forbidden) == 0 {
		return ""
	}
	return "permissions are missing: " + strings.Join(c.Forbidden, "; ") + ": grant them to the user whose credentials gitfleet uses there"
}

// A Placement is what is known of a placement, apart from its bindings.
type Placement struct {
	// Generation counts the changes of the canonical spec from 1.
	Generation int64
	SpecHash   string
	// Spec is the spec that was last declared. It is read-only, and nil in records of
	// older versions.
	Spec *api.PlacementSpec `json:",omitempty"`
	// Commit is the one that brought the spec.
	Commit string `json:",omitempty"`
	// Created is the time of the commit that brought the placement.
	Created time.Time
	// Index counts the distinct contents from 0; Content is the newest's hash.
	Index   int
	Content string
	// Revisions record when each of the newest contents came into force, oldest first.
	Revisions []Revised `json:",omitempty"`
	// RolloutStarted is when the rollout of the newest content began, RolloutFinished
	// when that content was available on every cluster; zero until it is.
	RolloutStarted  time.Time `json:",omitzero"`
	RolloutFinished time.Time `json:",omitzero"`
	// Proven is the last content that was available on every cluster: a commit
	// that has it, and what tells it from other content; zero if none ever was.
	Proven placement.Revision
	// Transitions remember by type when each condition of the placement last
	// changed.
	Transitions map[string]Transition `json:",omitempty"`
	// Resumed is when somebody last said that a stopped rollout is to go on.
	Resumed time.Time `json:",omitzero"`
	// Stops are the failed updates that stop the rollout, by cluster. They are not
	// changed once made.
	Stops []placement.Stop `json:",omitempty"`
	// Found says that who was chosen was forgotten and found again on clusters,
	// and that others have not answered since, which may hold the placement too.
	Found bool `json:",omitempty"`
	// Deleted says that the placement is gone from Git and is being removed.
	Deleted bool
	// DeletedAt is when its deletion from Git was first seen; zero if it is in Git.
	DeletedAt time.Time `json:",omitzero"`
	// Abandon says that what it placed stays where it is once it is gone.
	Abandon bool
	// AllowedContent is the content whose deletions a commit has allowed, by what
	// tells it from other content; empty if it is not the newest.
	AllowedContent string `json:",omitempty"`
	// Formerly are the earlier keys of a renamed placement, oldest first. The list is
	// read-only.
	Formerly []api.PlacementKey `json:",omitempty"`
	// Into is the new key of a renamed placement, which is Deleted under this key;
	// zero if it was not renamed.
	Into api.PlacementKey `json:",omitzero"`

	entries map[string]*Entry
	version uint64
}

// A Revised is when one of the contents of a placement came into force.
type Revised struct {
	Index int
	At    time.Time
}

// RollingOut reports whether the rollout of the newest content has started and is not
// finished.
func (p *Placement) RollingOut() bool {
	return !p.RolloutStarted.IsZero() && p.RolloutFinished.IsZero()
}

// RevisedAt returns when the content with an index came into force. If that was not
// recorded, it returns the time of the next content that was; zero if there is none.
func (p *Placement) RevisedAt(index int) time.Time {
	for _, r := range p.Revisions {
		if r.Index >= index {
			return r.At
		}
	}
	return time.Time{}
}

// put replaces an entry, or with nil removes it.
func (l *Ledger) put(p *Placement, cluster string, e *Entry) {
	p.version = l.next()
	if e == nil {
		delete(p.entries, cluster)
	} else {
		p.entries[cluster] = e
	}
}

// Version changes whenever anything about the placement or its entries does,
// but for their transitions. It means nothing after a restart.
func (p *Placement) Version() uint64 { return p.version }

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
	// AppliedAt is when all objects of the assigned revision were first observed to be
	// applied, AvailableAt when they were first observed to be available; zero until
	// then. Later failures change neither.
	AppliedAt   time.Time `json:",omitzero"`
	AvailableAt time.Time `json:",omitzero"`
	// AvailableSince is when what is assigned became available; zero if it is
	// not.
	AvailableSince time.Time
	// UnavailableSince is when what is assigned was first seen to be applied and
	// not available; zero if it is available, or nothing of it was seen.
	UnavailableSince time.Time `json:",omitzero"`
	// Transitions remember by type when each condition of the placement on this
	// cluster last changed.
	Transitions map[string]Transition `json:",omitempty"`
	Claims

	heard bool
}

// Heard reports whether the member has said anything since the ledger was loaded:
// what was seen before may have changed unseen.
func (e *Entry) Heard() bool { return e.heard }

// Claims are where what a cluster was told differs from the content assigned
// to it, because other placements are there too. They are not changed once
// made.
type Claims struct {
	// Yields are objects of the content that another placement holds there,
	// sorted by ID.
	Yields []Yield `json:",omitempty"`
	// Early are objects of later content, sorted: another placement gave them up
	// there, and nobody is to delete them in between.
	Early []api.ID `json:",omitempty"`
}

// A Yield is an object that is left to another placement.
type Yield struct {
	ID api.ID
	To api.PlacementKey
	// Passing says that the other placement gives the object up as soon as its
	// rollout gets to the cluster.
	Passing bool `json:",omitempty"`
}

// Equal reports whether both say the same.
func (c Claims) Equal(o Claims) bool {
	return c.Identical(o) || slices.Equal(c.Yields, o.Yields) && slices.Equal(c.Early, o.Early)
}

// Identical reports whether both are one and the same, which is quickly seen.
func (c Claims) Identical(o Claims) bool {
	return sameList(c.Yields, o.Yields) && sameList(c.Early, o.Early)
}

func sameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Empty reports whether the cluster was told all that is assigned to it, and no
// more.
func (c Claims) Empty() bool { return len(c.Yields)+len(c.Early) == 0 }

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{
		clusters:   map[string]*Cluster{},
		placements: map[api.PlacementKey]*Placement{}, suspensions: map[Subject]Suspension{},
		declared: map[api.ID]Declared{},
		told:     map[string]numbered{}, dirty: map[string]struct{}{},
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

// ClusterNames are the names of all clusters known, in no order.
func (l *Ledger) ClusterNames() iter.Seq[string] { return maps.Keys(l.clusters) }

// Comings counts the placements that came or went. It means nothing after a
// restart.
func (l *Ledger) Comings() uint64 { return l.comings }

// Placement returns what is known of a placement; nil if nothing is.
func (l *Ledger) Placement(key api.PlacementKey) *Placement { return l.placements[key] }

// Placements returns the keys of all placements known, by namespace and name.
func (l *Ledger) Placements() []api.PlacementKey {
	return slices.SortedFunc(maps.Keys(l.placements), func(a, b api.PlacementKey) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
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
		l.comings++
	}
	p.version = l.next()
	l.placements[key] = &p
	l.touch(placementKey(key))
}

// Bind writes down a binding, new or changed. The placement must be known.
func (l *Ledger) Bind(key api.PlacementKey, b placement.Binding) {
	p := l.placements[key]
	next := Entry{}
	if e := p.entries[b.Cluster]; e != nil {
		next = *e
		if e.Binding.Assigned != b.Assigned {
			next.AvailableSince, next.UnavailableSince = time.Time{}, time.Time{}
			next.AppliedAt, next.AvailableAt = time.Time{}, time.Time{}
		}
		if next.Seen != nil && next.Seen.Removed && !b.Removing {
			next.Seen = nil // that all is gone was of an earlier removal
		}
	}
	next.Binding = b
	l.put(p, b.Cluster, &next)
	l.touch(entryKey(key, b.Cluster))
}

// Claim writes down where what a cluster is told differs from what is assigned
// to it. It does nothing if the placement does not hold the cluster.
func (l *Ledger) Claim(key api.PlacementKey, cluster string, c Claims) {
	p := l.placements[key]
	if p == nil || p.entries[cluster] == nil {
		return
	}
	next := *p.entries[cluster]
	next.Claims = c
	l.put(p, cluster, &next)
	l.touch(entryKey(key, cluster))
}

// Unbind forgets that a placement holds a cluster.
func (l *Ledger) Unbind(key api.PlacementKey, cluster string) {
	if p := l.placements[key]; p != nil {
		l.put(p, cluster, nil)
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
		l.saw(placementKey(key))
	case p.entries[cluster] != nil:
		next := *p.entries[cluster]
		next.Transitions = to
		p.entries[cluster] = &next
		l.saw(entryKey(key, cluster))
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
	l.comings++
	l.touch(placementKey(key))
}

// ForgetCluster forgets a cluster that has left. Entries on it stay.
func (l *Ledger) ForgetCluster(name string) {
	delete(l.clusters, name)
	l.touch(clusterKey(name))
}

// next returns a version that nothing had before.
func (l *Ledger) next() uint64 {
	l.changes++
	return l.changes
}

// Unsaved reports whether anything is to be saved.
func (l *Ledger) Unsaved() bool { return len(l.dirty) > 0 }

// Pressing reports whether anything was decided, or a drift remembered, that is
// not saved yet: nobody is to be told of it before it is. What was only seen and
// can be seen again, and since when conditions hold, can wait: a crash that loses
// it is one that came a little earlier.
func (l *Ledger) Pressing() bool { return l.pressing }

// touch has the record of a decision saved.
func (l *Ledger) touch(key string) {
	l.pressing = true
	l.saw(key)
}

// saw has the record of something seen saved.
func (l *Ledger) saw(key string) { l.dirty[key] = struct{}{} }

// saved notes that a store has it all.
func (l *Ledger) saved() {
	clear(l.dirty)
	l.pressing = false
}
