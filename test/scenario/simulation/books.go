package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// books are the simulation's own record of the decisions and observations, independent of the
// product. They are immutable after a save.
type books struct {
	head  string
	pages map[api.PlacementKey]map[string]*ledger.Entry
	// rest are the suspensions, resumed the times at which rollouts were resumed, proven the
	// commits that were available on every cluster.
	rest    []ledger.Suspension
	resumed map[api.PlacementKey]time.Time
	proven  map[api.PlacementKey]string
	// halted are the recorded stops of each placement.
	halted map[api.PlacementKey][]placement.Stop
	// known are the placements that are not being deleted, renamed those with a new name, by the
	// commit that renamed them.
	known   map[api.PlacementKey]bool
	renamed map[api.PlacementKey]string
	// renames are all renames so far.
	renames []rename
	*memory
}

// A memory has what was observed, and what follows from it.
type memory struct {
	// heard are the clusters that have reported to this daemon, answers those that were healthy
	// in their last report.
	heard, answers map[string]bool
	words          map[bindingKey]word
	// blamed are the clusters that were available before their update.
	blamed map[bindingKey]bool
	// stops are the clusters whose failed update stops a rollout, with the content they were to
	// get.
	stops map[bindingKey]map[api.ID]string
	// joined are the clusters that have responded since the ledger began, found the placements
	// that were rebuilt from inventories.
	joined map[string]bool
	found  map[api.PlacementKey]bool
	// wishes are the suspensions that users asked for; unsure says that the result of the last
	// request is not known.
	wishes map[ledger.Subject]wish
	unsure bool
	// foreign are the clusters that another fleet holds, adopted the IDs of the fleets that a
	// user has adopted there.
	foreign map[string]bool
	adopted map[string]string
	// excused are the clusters, with what they are assigned, that a rollout no longer waits for
	// because a user resumed it.
	excused map[bindingKey]string
}

// A bindingKey is a placement on a cluster.
type bindingKey struct {
	key     api.PlacementKey
	cluster string
}

// A word is a member's last report of a placement.
type word struct {
	hash              string
	at, since         time.Time
	done, applied, up bool
	failed            bool // and it will not be up by itself
	untrackable       bool
	gone              bool // nothing is left
	compared          bool // and not applied
	partial           bool // but for objects that a person has suspended
}

// available reports whether all objects are applied and available.
func (x word) available() bool { return x.up && !x.compared && !x.partial }

func newBooks() *books {
	return &books{pages: map[api.PlacementKey]map[string]*ledger.Entry{}, renamed: map[api.PlacementKey]string{}, memory: &memory{
		heard: map[string]bool{}, answers: map[string]bool{}, words: map[bindingKey]word{}, blamed: map[bindingKey]bool{}, stops: map[bindingKey]map[api.ID]string{},
		joined: map[string]bool{}, found: map[api.PlacementKey]bool{}, wishes: map[ledger.Subject]wish{}, excused: map[bindingKey]string{},
		foreign: map[string]bool{}, adopted: map[string]string{},
	}}
}

// begin starts a daemon, which knows what was saved, unless that is lost.
func (w *world) begin(d *daemon) {
	if d.rebuilt {
		w.books = newBooks()
	} else {
		w.books.memory = w.saved.clone()
		w.recall()
	}
	w.books.heard = map[string]bool{}
	w.books.unsure = w.books.unsure || len(w.asked) > 0
	w.decided, w.asked = w.books, nil
}

func (m *memory) clone() *memory {
	return &memory{
		maps.Clone(m.heard), maps.Clone(m.answers), maps.Clone(m.words), maps.Clone(m.blamed), maps.Clone(m.stops),
		maps.Clone(m.joined), maps.Clone(m.found), maps.Clone(m.wishes), m.unsure, maps.Clone(m.foreign), maps.Clone(m.adopted), maps.Clone(m.excused),
	}
}

// hear records an observation.
func (w *world) hear(o ledger.Observation) {
	switch o := o.(type) {
	case ledger.ClusterSeen:
		w.books.heard[o.Cluster], w.books.answers[o.Cluster] = true, o.Healthy
		if w.decided == w.books && len(o.Holds) > 0 {
			w.decided = w.books.copy() // what is found again is not saved yet
		}
		w.books.hearOwners(o)
		w.books.joined[o.Cluster] = w.books.joined[o.Cluster] || o.Healthy
		if w.books.foreign[o.Cluster] && w.decided.head == "" {
			w.decided = w.decided.without(o.Cluster)
		}
		for _, h := range o.Holds {
			if w.books.foreign[o.Cluster] {
				break // nobody knows which of it is ours
			}
			w.books.found[h.Placement] = w.books.found[h.Placement] || w.decided.pages[h.Placement] == nil
			w.decided.rebuild(o, h)
		}
	case ledger.WorkSeen:
		// A removal that is heard of after the placement came back is an earlier one.
		if b, ok := w.decided.binding(bindingKey{o.Placement, o.Cluster}); !o.Removed || !ok || b.Removing {
			w.books.hearWork(o)
		}
	}
}

func (b *books) copy() *books {
	out := &books{b.head, make(map[api.PlacementKey]map[string]*ledger.Entry, len(b.pages)), b.rest, b.resumed, b.proven, b.halted, b.known, b.renamed, b.renames, b.memory}
	for key, page := range b.pages {
		out.pages[key] = maps.Clone(page)
	}
	return out
}

// rebuild records what a cluster holds after the ledger was lost.
func (b *books) rebuild(o ledger.ClusterSeen, h ledger.Held) {
	if b.pages[h.Placement] == nil {
		b.pages[h.Placement] = map[string]*ledger.Entry{}
	}
	if page := b.pages[h.Placement]; page[o.Cluster] == nil {
		page[o.Cluster] = &ledger.Entry{Binding: placement.Binding{Cluster: o.Cluster, Assigned: h.Revision, AssignedAt: o.At}}
	}
}

func (b *books) hearWork(o ledger.WorkSeen) {
	at := bindingKey{o.Placement, o.Cluster}
	was := b.words[at]
	now := word{
		hash: o.Revision.Hash, at: o.At, since: o.At, done: o.Done,
		applied: o.WithoutSuspended().Applied(), up: o.WithoutSuspended().Available(), failed: o.WithoutSuspended().Failed() != nil, untrackable: o.Untrackable > 0, gone: o.Removed,
		compared: o.Compared, partial: len(o.WithoutSuspended().Exceptions) < len(o.Exceptions),
	}
	if was.hash == now.hash && was.available() && now.available() {
		now.since = was.since
	}
	b.words[at] = now
}

// next returns the books after the ledger has been saved.
func (b *books) next(l *ledger.Ledger) *books {
	n := &books{
		head: l.Head(), pages: make(map[api.PlacementKey]map[string]*ledger.Entry, len(b.pages)), memory: b.memory, known: map[api.PlacementKey]bool{}, renamed: b.renamed, renames: b.renames,
		rest: l.Suspensions(), resumed: map[api.PlacementKey]time.Time{}, proven: map[api.PlacementKey]string{}, halted: map[api.PlacementKey][]placement.Stop{},
	}
	for _, key := range l.Placements() {
		entries := l.Placement(key).Entries()
		page := make(map[string]*ledger.Entry, len(entries))
		for _, e := range entries {
			page[e.Binding.Cluster] = e
		}
		n.pages[key], n.known[key] = page, !l.Placement(key).Deleted
		n.halted[key] = l.Placement(key).Stops
		n.resumed[key], n.proven[key] = l.Placement(key).Resumed, l.Placement(key).Proven.Commit
	}
	for name := range b.answers {
		if l.Cluster(name) == nil {
			delete(b.answers, name) // it has left
			delete(b.foreign, name)
			delete(b.adopted, name)
			delete(b.joined, name)
		}
	}
	for key := range b.found {
		if p := l.Placement(key); p == nil || p.Deleted {
			delete(b.found, key) // one that comes after it is new
		}
	}
	return n
}

// binding returns the entry of a placement on a cluster; false if the placement does not hold
// it.
func (b *books) binding(at bindingKey) (placement.Binding, bool) {
	if e := b.pages[at.key][at.cluster]; e != nil {
		return e.Binding, true
	}
	return placement.Binding{}, false
}

// live reports whether a placement holds a cluster and is to keep it.
func (b *books) live(at bindingKey) bool {
	binding, ok := b.binding(at)
	return ok && !binding.Unscheduled && !binding.Removing
}

// clusters returns the clusters of a placement in two books, in order.
func clusters(a, b *books, key api.PlacementKey) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.pages[key])), maps.Keys(b.pages[key]))
	slices.Sort(names)
	return slices.Compact(names)
}

// revision returns the revision that a cluster is assigned.
func (b *books) revision(at bindingKey) placement.Revision {
	binding, _ := b.binding(at)
	return binding.Assigned
}
