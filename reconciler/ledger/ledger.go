// Package ledger records decisions and observations.
//
// A Ledger is the state of the reconcile loop: the clusters that each placement holds, the
// revision assigned to each, and the last reports of the members. One goroutine owns it. Fold
// adds observations, the loop records its plans, and a Store keeps the ledger across restarts.
package ledger

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Ledger is not safe for concurrent use. Its records are replaced, not changed, except for the Transitions of entries.
type Ledger struct {
	*changes
	suspensions
	eventLog
	members
	inForce    string
	fleet      fleetRecord
	placements map[api.PlacementKey]*Placement
	// placementsVersion counts placements that were added or removed.
	placementsVersion uint64
}

// A Cluster is the record of a member cluster. Times are zero if it never happened.
type Cluster struct {
	protocol.ClusterSeen
	Since          time.Time // Healthy last changed
	ForbiddenSince time.Time `json:",omitzero"` // permissions are missing since then; zero if none are
	UnrenewedSince time.Time `json:",omitzero"` // replaced credentials are not used since then; zero if there are none
	LastSeen       time.Time // the cluster last answered
	Observed       time.Time // Properties were last read
	Joined         time.Time // the cluster first answered
	// Identified is when the cluster with this UID was first seen under this name; zero if that was
	// not recorded.
	Identified time.Time `json:",omitzero"`
	// Rivals are other fleets with inventories on the cluster. While there are any, nothing is
	// written to the cluster.
	Rivals []protocol.Owner `json:",omitempty"`

	version uint64
}

// Version changes with every change of the record except the time of observation. It has no
// meaning after a restart.
func (c *Cluster) Version() uint64 { return c.version }

// Outdated returns why replaced credentials are not used, and what is used instead; empty if there
// are none.
func (c *Cluster) Outdated() string {
	if c.Unrenewed == "" {
		return ""
	}
	return "the credentials were replaced, but the new ones cannot be used, and those from before are kept: " + c.Unrenewed
}

// Denied returns which permissions are missing and what to do; empty if none are known to be
// missing, and for a nil Cluster.
func (c *Cluster) Denied() string {
	if c == nil || len(c.Forbidden) == 0 {
		return ""
	}
	return "permissions are missing: " + strings.Join(c.Forbidden, "; ") + ": grant them to the user whose credentials gitfleet uses there"
}

// A Placement is the record of a placement, without its bindings. Its slices and its Spec are
// read-only.
type Placement struct {
	Generation int64 // the changes of the canonical spec, from 1
	SpecHash   string
	Spec       *api.PlacementSpec `json:",omitempty"` // the last declared one; nil in records of older versions
	Commit     string             `json:",omitempty"` // the commit that last changed the spec
	Created    time.Time          // time of the commit that added the placement
	Index      int                // number of the newest content, from 0
	Content    string             // hash of the newest content
	// Revisions are the times at which the commits with the newest contents were first seen,
	// oldest first.
	Revisions []Revised `json:",omitempty"`
	// RolloutStarted is when the commit with the newest content was first seen. RolloutFinished is
	// when that content was available on every cluster; zero until it is.
	RolloutStarted  time.Time `json:",omitzero"`
	RolloutFinished time.Time `json:",omitzero"`
	// Proven is a commit with the last content that was available on every cluster, and the
	// fingerprint of that content; zero if there is none.
	Proven placement.Revision
	// ProvenBefore are the fingerprints of earlier contents that were available on every cluster,
	// oldest first. A commit that returns to one of them is a rollback.
	ProvenBefore []string              `json:",omitempty"`
	Transitions  map[string]Transition `json:",omitempty"` // the last changes of its conditions, by type
	Resumed      time.Time             `json:",omitzero"`  // a user last resumed a stopped rollout
	Stops        []placement.Stop      `json:",omitempty"` // the failed updates that stop the rollout, by cluster
	// Runs are the staged update runs that are declared, and the one in force, in the order in which they appeared.
	Runs []placement.Run `json:",omitempty"`
	// LostRuns are the names of the runs that Git had when the ledger was lost, until a run is recorded again. They may have
	// appeared in earlier commits, with other content.
	LostRuns []string `json:",omitempty"`
	// Evictions are the evictions in Git and the newest ones from gitfleet evict and drain, oldest first.
	Evictions []placement.Eviction `json:",omitempty"`
	// Rebuilt says that the bindings were rebuilt from inventories after the ledger was lost.
	// Clusters that have not answered since may also hold the placement.
	Rebuilt   bool      `json:"Found,omitempty"`
	Deleted   bool      // it is no longer in Git and is being removed
	DeletedAt time.Time `json:",omitzero"` // when that was first seen
	Abandon   bool      // its objects stay on clusters when it is removed
	// AllowedContent is the fingerprint of the content whose deletions a commit has allowed;
	// empty if that is not the newest content.
	AllowedContent string             `json:",omitempty"`
	Formerly       []api.PlacementKey `json:",omitempty"` // earlier keys of a renamed placement, oldest first
	// Into is the new key of a renamed placement, whose record under this key is Deleted; zero
	// if it was not renamed.
	Into api.PlacementKey `json:",omitzero"`

	entries *entries
	version uint64
	// own is the version of the record without its entries.
	own uint64
}

// A Revised records when the commit with a content of a placement was first seen.
type Revised struct {
	Index int
	At    time.Time
	// Content is that commit and the fingerprint of the content; zero unless staged update runs may ask for it.
	Content placement.Revision `json:",omitzero"`
}

// RollingOut reports whether the rollout of the newest content has started and is not finished.
func (p *Placement) RollingOut() bool {
	return !p.RolloutStarted.IsZero() && p.RolloutFinished.IsZero()
}

// RevisedAt returns when the commit with the content of an index was first seen. If that was not
// recorded, it returns the time of the next content that was recorded; zero if there is none.
func (p *Placement) RevisedAt(index int) time.Time {
	for _, r := range p.Revisions {
		if r.Index >= index {
			return r.At
		}
	}
	return time.Time{}
}

// Version changes with every change of the placement or its entries except transitions. It has
// no meaning after a restart.
func (p *Placement) Version() uint64 { return p.version }

// SameRecord reports whether a later record of the placement differs at most in its transitions and in its entries.
func (p *Placement) SameRecord(later *Placement) bool {
	return p.own == later.own && p.entries == later.entries
}

// A Transition is the last change of one condition.
type Transition struct {
	Status string
	Time   time.Time
}

// New returns an empty ledger.
func New() *Ledger {
	unsaved := &changes{dirty: map[string]bool{}}
	return &Ledger{
		changes: unsaved, suspensions: suspensions{unsaved, map[Subject]Suspension{}}, eventLog: eventLog{changes: unsaved, byKey: map[string]numbered{}},
		members:    members{clusters: map[string]*Cluster{}, declared: map[api.ID]Declared{}, names: map[string][]string{}},
		placements: map[api.PlacementKey]*Placement{},
	}
}

// InForce returns the last commit in force; empty if there was none.
func (l *Ledger) InForce() string { return l.inForce }

// SetInForce records the commit in force.
func (l *Ledger) SetInForce(commit string) {
	if l.inForce != commit {
		l.inForce = commit
		l.markUrgent(headKey)
	}
}

// Empty reports whether there are no clusters and no placements.
func (l *Ledger) Empty() bool { return len(l.clusters)+len(l.placements) == 0 }

// PlacementsVersion changes when a placement is added or removed. It has no meaning after a
// restart.
func (l *Ledger) PlacementsVersion() uint64 { return l.placementsVersion }

// Placement returns the record of a placement; nil if there is none.
func (l *Ledger) Placement(key api.PlacementKey) *Placement { return l.placements[key] }

// Placements returns the keys of all placements, by namespace and name.
func (l *Ledger) Placements() []api.PlacementKey {
	return slices.SortedFunc(maps.Keys(l.placements), api.PlacementKey.Compare)
}

// Entries returns a placement's entries, sorted by cluster. They are read-only.
func (p *Placement) Entries() []*Entry {
	return slices.Clone(p.entries.list)
}

// EntriesThat returns the entries for which a condition holds, sorted by cluster. They are read-only.
func (p *Placement) EntriesThat(are func(*Entry) bool) []*Entry {
	var out []*Entry
	for _, e := range p.entries.list {
		if are(e) {
			out = append(out, e)
		}
	}
	return out
}

// AllEntries iterates over the entries, sorted by cluster, with their positions. They are read-only.
func (p *Placement) AllEntries() iter.Seq2[int, *Entry] { return slices.All(p.entries.list) }

// Entry returns the entry of one cluster; nil if the placement does not hold it.
func (p *Placement) Entry(cluster string) *Entry { return p.entries.of(cluster) }

// Bindings returns copies of a placement's bindings, sorted by cluster.
func (p *Placement) Bindings() []placement.Binding {
	return p.AppendBindings(make([]placement.Binding, 0, len(p.entries.list)))
}

// AppendBindings appends copies of a placement's bindings, sorted by cluster.
func (p *Placement) AppendBindings(to []placement.Binding) []placement.Binding {
	for _, e := range p.entries.list {
		to = append(to, e.Binding)
	}
	return to
}

// SetPlacement sets the record of a placement. Its entries stay.
func (l *Ledger) SetPlacement(key api.PlacementKey, p Placement) {
	if old := l.placements[key]; old != nil {
		p.entries = old.entries
	} else {
		p.entries = &entries{}
		l.placementsVersion++
	}
	p.version = l.next()
	p.own = p.version
	l.placements[key] = &p
	l.markUrgent(placementKey(key))
}

// ResumeRollout records that a user resumed a stopped rollout. It does nothing for an unknown
// placement.
func (l *Ledger) ResumeRollout(key api.PlacementKey, at time.Time) {
	if old := l.placements[key]; old != nil {
		next := *old
		next.Resumed, next.Stops = at, nil
		l.SetPlacement(key, next)
	}
}

// setEntry sets an entry; nil deletes it.
func (l *Ledger) setEntry(p *Placement, cluster string, e *Entry) {
	p.version = l.next()
	if e == nil {
		p.entries.remove(cluster)
	} else {
		p.entries.put(e)
	}
}

// Bind sets a binding, new or changed. The placement must be known.
func (l *Ledger) Bind(key api.PlacementKey, b placement.Binding) {
	p := l.placements[key]
	next := Entry{}
	e := p.entries.of(b.Cluster)
	if e == nil {
		l.add(entryKey(key, b.Cluster), b.Cluster)
	} else {
		next = *e
		if e.Binding.Assigned != b.Assigned {
			next.times[AvailableSince], next.times[AppliedAt], next.times[AvailableAt] = 0, 0, 0
			in := *next.Unusual()
			in.UnavailableSince, in.Writing = time.Time{}, false
			next.setCircumstances(in)
		}
		if next.Seen != nil && next.Seen.Removed && !b.Removing {
			next.Seen, next.inventory, next.times[SeenAt] = nil, 0, 0 // a report that everything is removed belongs to an earlier removal
		}
	}
	times := next.Times()
	next.Binding = b
	next.SetTimes(times)
	l.setEntry(p, b.Cluster, &next)
	l.markUrgent(entryKey(key, b.Cluster))
}

// SetDeviation sets how what a cluster was sent deviates from its content, from a time on. It does nothing if the
// placement does not hold the cluster.
func (l *Ledger) SetDeviation(key api.PlacementKey, cluster string, c Deviation, at time.Time) {
	p := l.placements[key]
	if p == nil || p.entries.of(cluster) == nil {
		return
	}
	next := *p.entries.of(cluster)
	in := *next.Unusual()
	if in.LeavesObjects() != c.LeavesObjects() {
		in.DisturbedAt = at
	}
	in.Deviation = c
	next.setCircumstances(in)
	l.setEntry(p, cluster, &next)
	l.markUrgent(entryKey(key, cluster))
}

// Unbind deletes the entry of a cluster.
func (l *Ledger) Unbind(key api.PlacementKey, cluster string) {
	if p := l.placements[key]; p != nil {
		l.setEntry(p, cluster, nil)
		l.drop(entryKey(key, cluster))
		l.markUrgent(entryKey(key, cluster))
	}
}

// SetTransitions records changes of conditions: of the placement or, if cluster is not empty,
// of the placement on the cluster.
func (l *Ledger) SetTransitions(key api.PlacementKey, cluster string, to map[string]Transition) {
	p := l.placements[key]
	switch {
	case p == nil:
	case cluster == "":
		next := *p
		next.Transitions = to
		l.placements[key] = &next
		l.markUnsaved(placementKey(key))
	case p.entries.of(cluster) != nil:
		p.entries.of(cluster).Transitions = to
		l.markUnsaved(entryKey(key, cluster))
	}
}

// Forget deletes a placement and all its entries.
func (l *Ledger) Forget(key api.PlacementKey) {
	p := l.placements[key]
	if p == nil {
		return
	}
	l.markPlacement(key, p)
	delete(l.placements, key)
	l.placementsVersion++
}

// markPlacement marks a placement and its entries as urgent.
func (l *Ledger) markPlacement(key api.PlacementKey, p *Placement) {
	l.markUrgent(placementKey(key))
	for _, e := range p.entries.list {
		l.markUrgent(entryKey(key, e.Binding.Cluster))
	}
}

// ForgetCluster deletes a cluster that has left the fleet. Entries on it stay.
func (l *Ledger) ForgetCluster(name string) {
	if c := l.clusters[name]; c != nil {
		delete(l.clusters, name)
		l.sortNames(c.UID, "")
	}
	l.markUrgent(clusterKey(name))
}

// Checkpoint returns a function that restores the fleet, the clusters, the suspensions and the
// records of placements as they are now. Entries, events and declared objects are not restored.
// Everything that was marked as unsaved is still saved.
func (l *Ledger) Checkpoint() (undo func()) {
	fleet, clusters, names, placements, suspended := l.fleet, maps.Clone(l.clusters), maps.Clone(l.names), maps.Clone(l.placements), maps.Clone(l.suspended)
	return func() {
		l.fleet, l.clusters, l.names, l.placements, l.suspended = fleet, clusters, names, placements, suspended
	}
}
