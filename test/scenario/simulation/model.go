package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A model is the simulation's own record of decisions and observations, independent of the
// product. It is immutable after a save.
type model struct {
	head    string
	entries map[api.PlacementKey]map[string]*ledger.Entry
	// suspensions are those in the ledger, resumed the times at which rollouts were resumed,
	// proven the commits that were available on every cluster, specified those that last changed
	// what a placement asks for when it was planned. A commit in force may not be planned yet.
	suspensions []ledger.Suspension
	resumed     map[api.PlacementKey]time.Time
	proven      map[api.PlacementKey]string
	specified   map[api.PlacementKey]string
	// recordedStops are the stops of each placement in the ledger.
	recordedStops map[api.PlacementKey][]placement.Stop
	// runs has the staged update runs that the ledger records, by placement.
	runs map[api.PlacementKey][]placement.Run
	// known are the placements that are not being deleted, renamed those with a new name, by the
	// commit that renamed them.
	known   map[api.PlacementKey]bool
	renamed map[api.PlacementKey]string
	// renames are all renames so far.
	renames []rename
	*observations
}

// observations are what was observed, and what follows from it.
type observations struct {
	// reported are the clusters that have reported to this daemon, healthy those that were
	// healthy in their last report.
	reported, healthy map[string]bool
	reports           map[bindingKey]workReport
	// risked are the clusters that were available before their update.
	risked map[bindingKey]bool
	// failedUpdates are the clusters whose failed update stops a rollout, with the content of
	// that update.
	failedUpdates map[bindingKey]map[api.ID]string
	// responded are the clusters that have responded since the ledger was created, found the
	// placements that were rebuilt from inventories.
	responded map[string]bool
	found     map[api.PlacementKey]bool
	// requestedSuspensions are those that users requested; uncertain says that the result of
	// the last request is not known.
	requestedSuspensions map[ledger.Subject]requestedSuspension
	uncertain            bool
	// foreign are the clusters that another fleet holds, adopted the IDs of the fleets that a
	// user has adopted there.
	foreign map[string]bool
	adopted map[string]string
	// excused are the clusters, with their assigned hashes, for which a rollout no longer waits
	// because a user resumed it.
	excused map[bindingKey]string
	// outages are the clusters that are unavailable with their content, counted those that have counted as available with
	// it, with its hash.
	outages map[bindingKey]outage
	counted map[bindingKey]string
	// disturbed is when gitfleet last did something besides a write that may change availability, leaving where objects are
	// left to another placement, healthSince when a cluster last began or ceased to answer.
	disturbed   map[bindingKey]time.Time
	leaving     map[bindingKey]bool
	healthSince map[string]time.Time
	// leftover are the hashes of what a placement has on a cluster that is being removed there, and whose name another
	// placement has got.
	leftover map[bindingKey]string
	// stagedRuns is what was observed of staged update runs.
	stagedRuns stagedObservations
}

// A bindingKey is a placement on a cluster.
type bindingKey struct {
	key     api.PlacementKey
	cluster string
}

// A workReport is a member's last report of a placement.
type workReport struct {
	hash                     string
	at, availableSince       time.Time
	done, applied, available bool
	failed                   bool // and will not become available without a change
	untrackable              bool
	removed                  bool     // no object is left
	compared                 bool     // compared only, not applied
	withSuspended            bool     // except for suspended objects
	leftOut                  []api.ID // the suspended objects
}

// fullyAvailable reports whether all objects are applied and available, including suspended
// ones.
func (x workReport) fullyAvailable() bool { return x.available && !x.compared && !x.withSuspended }

func newModel() *model {
	return &model{entries: map[api.PlacementKey]map[string]*ledger.Entry{}, renamed: map[api.PlacementKey]string{}, observations: &observations{
		reported: map[string]bool{}, healthy: map[string]bool{}, reports: map[bindingKey]workReport{}, risked: map[bindingKey]bool{}, failedUpdates: map[bindingKey]map[api.ID]string{},
		responded: map[string]bool{}, found: map[api.PlacementKey]bool{}, requestedSuspensions: map[ledger.Subject]requestedSuspension{}, excused: map[bindingKey]string{},
		foreign: map[string]bool{}, adopted: map[string]string{},
		outages: map[bindingKey]outage{}, counted: map[bindingKey]string{}, disturbed: map[bindingKey]time.Time{}, leaving: map[bindingKey]bool{}, healthSince: map[string]time.Time{}, leftover: map[bindingKey]string{},
		stagedRuns: newStagedObservations(),
	}}
}

// startModel returns to the saved model when a daemon starts, or to an empty one if the ledger
// is lost.
func (w *world) startModel(d *daemon) {
	if d.rebuilt {
		w.saved = newModel()
	} else {
		// also if the next save is undone
		w.savedObservations.uncertain = w.savedObservations.uncertain || len(w.requests) > 0
		w.saved.observations = w.savedObservations.clone()
		w.rebaseReports()
	}
	w.saved.reported = map[string]bool{}
	w.saved.doubtOutages(func(bindingKey) bool { return true })
	w.saved.uncertain = w.saved.uncertain || len(w.requests) > 0
	w.decided, w.requests = w.saved, nil
}

func (m *observations) clone() *observations {
	return &observations{
		maps.Clone(m.reported), maps.Clone(m.healthy), maps.Clone(m.reports), maps.Clone(m.risked), maps.Clone(m.failedUpdates),
		maps.Clone(m.responded), maps.Clone(m.found), maps.Clone(m.requestedSuspensions), m.uncertain, maps.Clone(m.foreign), maps.Clone(m.adopted), maps.Clone(m.excused),
		maps.Clone(m.outages), maps.Clone(m.counted), maps.Clone(m.disturbed), maps.Clone(m.leaving), maps.Clone(m.healthSince), maps.Clone(m.leftover),
		m.stagedRuns.clone(),
	}
}

// record records an observation.
func (w *world) record(o protocol.Observation) {
	switch o := o.(type) {
	case protocol.ClusterSeen:
		w.saved.reported[o.Cluster] = true
		w.saved.recordHealth(o)
		if w.decided == w.saved && len(o.Inventories) > 0 {
			w.decided = w.saved.copy() // what was rebuilt is not saved yet
		}
		w.saved.recordFleets(o)
		w.saved.responded[o.Cluster] = w.saved.responded[o.Cluster] || o.Healthy
		if w.saved.foreign[o.Cluster] && w.decided.head == "" {
			w.decided = w.decided.withoutCluster(o.Cluster)
		}
		for _, h := range o.Inventories {
			if w.saved.foreign[o.Cluster] {
				break // it is not known which of it belongs to the fleet
			}
			w.saved.found[h.Placement] = w.saved.found[h.Placement] || w.decided.entries[h.Placement] == nil
			w.decided.rebuild(o, h)
		}
	case protocol.WorkSeen:
		// A removal that is reported after the placement was selected again is an earlier one.
		if b, ok := w.decided.binding(bindingKey{o.Placement, o.Cluster}); !o.Removed || !ok || b.Removing {
			w.saved.recordWork(o)
			w.saved.recordOutage(bindingKey{o.Placement, o.Cluster}, &o, b.Assigned)
			w.noteAvailable(&o)
		}
	}
}

func (b *model) copy() *model {
	out := &model{b.head, make(map[api.PlacementKey]map[string]*ledger.Entry, len(b.entries)), b.suspensions, b.resumed, b.proven, b.specified, b.recordedStops, b.runs, b.known, b.renamed, b.renames, b.observations}
	for key, page := range b.entries {
		out.entries[key] = maps.Clone(page)
	}
	return out
}

// rebuild records what a cluster holds after the ledger was lost.
func (b *model) rebuild(o protocol.ClusterSeen, h protocol.InventorySeen) {
	if b.entries[h.Placement] == nil {
		b.entries[h.Placement] = map[string]*ledger.Entry{}
	}
	if page := b.entries[h.Placement]; page[o.Cluster] == nil {
		page[o.Cluster] = &ledger.Entry{Binding: placement.Binding{Cluster: o.Cluster, Assigned: h.Revision, AssignedAt: o.At}}
		b.counted[bindingKey{h.Placement, o.Cluster}] = h.Revision.Hash // it may have been available
	}
}

func (b *model) recordWork(o protocol.WorkSeen) {
	at := bindingKey{o.Placement, o.Cluster}
	was := b.reports[at]
	now := workReport{
		hash: o.Revision.Hash, at: o.At, availableSince: o.At, done: o.Done,
		applied: o.WithoutSuspended().Applied(), available: o.WithoutSuspended().Available(), failed: o.WithoutSuspended().Failed() != nil, untrackable: o.Untrackable > 0, removed: o.Removed,
		compared: o.Compared, withSuspended: len(o.WithoutSuspended().Exceptions) < len(o.Exceptions),
	}
	for _, s := range o.Exceptions {
		if s.Applied.Reason == api.Suspended {
			now.leftOut = append(now.leftOut, s.ID)
		}
	}
	if was.hash == now.hash && was.fullyAvailable() && now.fullyAvailable() {
		now.availableSince = was.availableSince
	}
	b.reports[at] = now
}

// after returns the model after the ledger has been saved.
func (b *model) after(l *ledger.Ledger) *model {
	n := &model{
		head: l.InForce(), entries: make(map[api.PlacementKey]map[string]*ledger.Entry, len(b.entries)), observations: b.observations, known: map[api.PlacementKey]bool{}, renamed: b.renamed, renames: b.renames,
		suspensions: l.Suspensions(), resumed: map[api.PlacementKey]time.Time{}, proven: map[api.PlacementKey]string{}, specified: map[api.PlacementKey]string{}, recordedStops: map[api.PlacementKey][]placement.Stop{},
		runs: map[api.PlacementKey][]placement.Run{},
	}
	for _, key := range l.Placements() {
		entries := l.Placement(key).Entries()
		page := make(map[string]*ledger.Entry, len(entries))
		for _, e := range entries {
			page[e.Binding.Cluster] = e
		}
		n.entries[key], n.known[key] = page, !l.Placement(key).Deleted
		n.recordedStops[key], n.runs[key] = l.Placement(key).Stops, l.Placement(key).Runs
		n.resumed[key], n.proven[key] = l.Placement(key).Resumed, l.Placement(key).Proven.Commit
		n.specified[key] = l.Placement(key).Commit
	}
	for name := range b.healthy {
		if l.Cluster(name) == nil {
			delete(b.healthy, name) // it has left the fleet
			delete(b.foreign, name)
			delete(b.adopted, name)
			delete(b.responded, name)
		}
	}
	for key := range b.found {
		if p := l.Placement(key); p == nil || p.Deleted {
			delete(b.found, key) // a later one of that name is new
		}
	}
	return n
}

// binding returns the entry of a placement on a cluster; false if the placement does not hold
// it.
func (b *model) binding(at bindingKey) (placement.Binding, bool) {
	if e := b.entries[at.key][at.cluster]; e != nil {
		return e.Binding, true
	}
	return placement.Binding{}, false
}

// keeps reports whether a placement holds a cluster and does not leave it.
func (b *model) keeps(at bindingKey) bool {
	binding, ok := b.binding(at)
	return ok && !binding.Unscheduled && !binding.Removing
}

// clusters returns the clusters of a placement in two models, in order.
func clusters(a, b *model, key api.PlacementKey) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.entries[key])), maps.Keys(b.entries[key]))
	slices.Sort(names)
	return slices.Compact(names)
}

// revision returns the revision that a cluster is assigned.
func (b *model) revision(at bindingKey) placement.Revision {
	binding, _ := b.binding(at)
	return binding.Assigned
}
