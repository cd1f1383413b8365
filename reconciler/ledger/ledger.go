// Package ledger records decisions and observations.
//
// A Ledger is the state of the reconcile loop: the clusters that each placement holds, the
// revision assigned to each, and the last reports of the members. One goroutine owns it. Fold
// adds observations, the loop records its plans, and a Store keeps the ledger across restarts.
package ledger

import (
	"maps"
	"slices"
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

// fleetRecord is the stored record of the fleet.
type fleetRecord struct {
	protocol.Fleet
	Adopted    []protocol.Adoption `json:"adopted,omitempty"`
	Repository Repository          `json:"repository,omitzero"`
}

// A Repository is what is recorded of the repository at one moment, so that a restart repeats nothing of it.
type Repository struct {
	InForce string `json:"-"` // the last commit in force, which has a record of its own; empty if there was none
	// Refused is the hash of the newest commit if it is refused, and Why a summary of the reason; both are empty otherwise.
	Refused string `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
	// Unreadable is why the last poll could not read the remote; empty if it could. NotAccepted is why the newest commit that was read is
	// not accepted, so that it is not loaded; empty if it is.
	Unreadable  string `json:"unreadable,omitempty"`
	NotAccepted string `json:"notAccepted,omitempty"`
}

// Polled returns r after a poll with an error, which may be why the newest commit is not accepted; empty after a successful one.
func (r Repository) Polled(err string, notAccepted bool) Repository {
	r.Unreadable = err
	if notAccepted {
		r.Unreadable, r.NotAccepted = "", err
	} else if err == "" {
		r.NotAccepted = ""
	}
	return r
}

// New returns an empty ledger.
func New() *Ledger {
	unsaved := &changes{dirty: map[string]bool{}}
	return &Ledger{
		changes: unsaved, suspensions: suspensions{unsaved, map[Subject]Suspension{}}, eventLog: eventLog{changes: unsaved, byKey: map[string]numbered{}},
		members:    members{changes: unsaved, clusters: map[string]*Cluster{}, declared: map[api.ID]Declared{}, names: map[string][]string{}},
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

// RepositoryOf returns what a ledger has of the repository.
func RepositoryOf(l *Ledger) Repository {
	r := l.fleet.Repository
	r.InForce = l.inForce
	return r
}

// SetRepository replaces what a ledger has of the repository.
func SetRepository(l *Ledger, r Repository) {
	l.SetInForce(r.InForce)
	r.InForce = ""
	if l.fleet.Repository != r {
		l.fleet.Repository = r
		l.markUrgent(fleetKey)
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

// RecordOf returns the record of a member.
func RecordOf(l *Ledger, cluster string) protocol.MemberRecord {
	r := protocol.MemberRecord{Drifts: l.Drifts(cluster), Inventories: map[api.PlacementKey]uint64{}}
	for key, p := range l.placements {
		if e := p.entries.of(cluster); e != nil && !e.Binding.Removing && e.inventory > 0 {
			r.Inventories[key] = e.inventory
		}
	}
	if c := l.clusters[cluster]; c != nil {
		r.UID, r.Version = c.UID, c.ClusterSeen.Version
	}
	return r
}

// ClustersSince returns the clusters whose records were replaced since an earlier call for the ledger, which has returned a
// version, and the version for the next call. The list is not complete if something may have changed about any cluster: a suspension,
// for example, the identity of another cluster, or what is declared.
func ClustersSince(l *Ledger, version uint64) (names []string, now uint64, complete bool) {
	before := l.recent.before
	now = before + uint64(len(l.recent.names))
	if version < before || version > now {
		return nil, now, false
	}
	return l.recent.names[version-before:], now, true
}

// HasBinding reports whether any placement has a binding of a cluster.
func (l *Ledger) HasBinding(cluster string) bool {
	for _, p := range l.placements {
		if p.entries.of(cluster) != nil {
			return true
		}
	}
	return false
}

// Drifts returns the drifts on a cluster, by placement, as last reported. They must not be
// changed.
func (l *Ledger) Drifts(cluster string) map[api.PlacementKey][]protocol.Drift {
	out := map[api.PlacementKey][]protocol.Drift{}
	for key, p := range l.placements {
		if e := p.entries.of(cluster); e != nil && len(e.drifts()) > 0 {
			out[key] = e.drifts()
		}
	}
	return out
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
			in.UnavailableSince, in.Writing, in.LastComplete = time.Time{}, false, nil
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

// Resume ends a suspension, and reports whether there was one.
func (l *Ledger) Resume(s Subject, at time.Time) bool {
	if _, ok := l.suspended[s]; !ok {
		return false
	}
	l.suspensions.remove(s)
	if s.Effect == StopsWrites {
		disturb(l, s, at)
	}
	return true
}

// disturb sets DisturbedAt of the entries that a subject covers. It is not known which placement has an
// object: all count.
func disturb(l *Ledger, s Subject, at time.Time) {
	for key, p := range l.placements {
		if s.Placement != (api.PlacementKey{}) && s.Placement != key {
			continue
		}
		for _, e := range p.entries.list {
			cluster := e.Binding.Cluster
			if s.Cluster == "" || s.Cluster == cluster {
				next, in := *e, *e.Unusual()
				in.DisturbedAt = at
				next.setCircumstances(in)
				l.setEntry(p, cluster, &next)
				l.markUnsaved(entryKey(key, cluster))
			}
		}
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

// Checkpoint returns a function that restores the fleet, the clusters, the suspensions, the events and the
// records of placements as they are now. Entries and declared objects are not restored.
// Everything that was marked as unsaved is still saved.
func (l *Ledger) Checkpoint() (undo func()) {
	fleet, clusters, names, placements, suspended, events := l.fleet, maps.Clone(l.clusters), maps.Clone(l.names), maps.Clone(l.placements), maps.Clone(l.suspended), l.events
	return func() {
		l.SetEvents(events)
		l.fleet, l.clusters, l.names, l.placements, l.suspended = fleet, clusters, names, placements, suspended
		l.recent.changed()
	}
}
