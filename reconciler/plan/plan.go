// Package plan computes the next state of the fleet.
//
// For one commit and one time, Resolve computes which objects each placement selects, which clusters it gets, and which
// of them may be updated now. The resulting Plan has everything that follows from that: the changes of the ledger, the
// works of each cluster, and the time of the next plan. Resolve does no I/O and changes nothing but the Memo.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// Resolve plans all placements. Placements whose inputs have not changed since the Memo was last used share their
// results with the previous plan.
func Resolve(in Input) *Plan {
	pl := newPlanner(in)
	pl.rename()
	pl.results = pl.newResults()
	for i := range pl.results.list {
		pl.planPlacement(i)
	}
	pl.pauseClusters()
	return pl.finish()
}

// newResults returns the list for the results of this call.
func (pl *planner) newResults() results {
	m := pl.memo
	if version := pl.Ledger.PlacementsVersion(); m.order.inForce != pl.InForce || m.order.ledger != pl.Ledger || m.order.placementsVersion != version {
		m.order = newOrder(pl.Input, version)
	}
	list := m.spareResults
	if m.spareResults = nil; len(list) != len(m.order.planned) {
		list = make([]*result, len(m.order.planned))
	}
	return results{m.order, list}
}

func newOrder(in Input, placementsVersion uint64) *order {
	o := &order{inForce: in.InForce, ledger: in.Ledger, placementsVersion: placementsVersion, planned: sequence(in), at: map[api.PlacementKey]int{}}
	for i, key := range o.planned {
		o.at[key] = i
		o.sorted = append(o.sorted, i)
	}
	slices.SortFunc(o.sorted, func(a, b int) int { return o.planned[a].Compare(o.planned[b]) })
	return o
}

// sequence lists the placements of the commit in force and of the ledger, each once: a placement that the affinity of
// another names comes before it, and the earlier keys of renamed placements come last.
func sequence(in Input) []api.PlacementKey {
	policies := map[api.PlacementKey]*api.PlacementPolicy{}
	for _, key := range in.Ledger.Placements() {
		policies[key] = nil
	}
	for _, p := range in.InForce.Placements {
		policies[p.Key] = p.Spec.Policy
	}
	keys := placement.Sequence(policies)
	slices.SortStableFunc(keys, func(a, b api.PlacementKey) int { return cmp.Compare(renamed(in, a), renamed(in, b)) })
	return keys
}

// renamed returns 1 for an earlier key of a renamed placement, and 0 for any other.
func renamed(in Input, key api.PlacementKey) int {
	if record := in.Ledger.Placement(key); record != nil && record.Into != (api.PlacementKey{}) {
		return 1
	}
	return 0
}

// planPlacement plans the placement at a position, or reuses the previous result if its inputs are the same. If planning panics, the
// placement keeps what it holds, and the others are planned as usual.
func (pl *planner) planPlacement(i int) {
	key := pl.results.planned[i]
	record := pl.Ledger.Placement(key)
	defer func() {
		if cause := recover(); cause != nil {
			failed := failedResult(key, pl.memo.spec(key), record, fmt.Sprint(cause))
			if p := failed.placement; p.Spec != nil && pl.FirstPlan {
				p.Record.LostRuns = pl.lostRuns(p.Key, p.Record.LostRuns)
				p.RecordChanged = len(p.Record.LostRuns) > 0
			}
			pl.results.list[i] = failed
		}
	}()
	old := pl.lastResult(i)
	inputs := pl.keyOf(key, record, old)
	if old != nil && old.resultKey == inputs && pl.stillValid(old) {
		pl.results.list[i] = old
		return
	}
	if r := pl.follow(old, inputs, record); r != nil {
		if pl.memo.check != nil {
			pl.memo.check(key, r.placement.difference(pl.planFromScratch(key, inputs, record).placement))
		}
		pl.results.list[i] = r
		return
	}
	r := pl.planFromScratch(key, inputs, record)
	if old != nil {
		pl.memo.spareClusters = r.placement.reuseClusters(old.placement, pl.memo.spareClusters)
	}
	pl.results.list[i] = r
}

// lastResult returns what the last call has decided about the placement at a position; nil if that is nothing.
func (pl *planner) lastResult(i int) *result {
	if last := pl.memo.results; last.order != pl.results.order {
		return last.of(pl.results.planned[i])
	}
	return pl.memo.results.list[i]
}

// keyOf collects everything that the result for a placement depends on. The old result is that of the last call, and may be nil.
func (pl *planner) keyOf(key api.PlacementKey, record *ledger.Placement, old *result) resultKey {
	if pl.unchanged && old != nil && record != nil && old.successor == nil && old.others == "" && record.Version() == old.recordVersion &&
		record.Into == (api.PlacementKey{}) && pl.unclear[key] == old.unclearRename {
		return old.resultKey
	}
	in := resultKey{
		spec: pl.memo.spec(key), fleetVersion: pl.memo.members.Version, suspensionsVersion: pl.memo.suspensions.Version,
		deleteAllowed: Allows(pl.InForce.Commit.Message, key), unclearRename: pl.unclear[key],
	}
	if record != nil {
		in.recordVersion = record.Version()
		if in.successor = pl.results.of(record.Into); in.successor != nil {
			in.deleteAllowed = in.deleteAllowed || Allows(pl.InForce.Commit.Message, record.Into)
		}
		in.deleteAllowed = in.deleteAllowed || slices.ContainsFunc(record.Formerly, pl.allowsFormer)
	}
	if in.spec == nil {
		return in
	}
	if len(placement.ReferencedProperties(in.spec.Spec.Policy)) > 0 {
		in.propertiesVersion = pl.memo.members.PropertiesVersion
	}
	if key.Namespace != "" {
		in.namespacesVersion = pl.memo.members.NamespacesVersion
	}
	in.windows = pl.windowsOf(in.spec.Labels)
	in.prepared = pl.memo.prepare(pl.InForce, key)
	if others := pl.clustersOfOthers(in.spec); others != nil {
		in.others = fmt.Sprint(others)
	}
	in.runs, in.evictions = pl.memo.inForce.runTexts[key], pl.memo.inForce.evictionTexts[key]
	return in
}

// allowsFormer reports whether the commit allows deletions under an earlier key of a placement that no other placement
// has taken since.
func (pl *planner) allowsFormer(key api.PlacementKey) bool {
	return pl.memo.spec(key) == nil && Allows(pl.InForce.Commit.Message, key)
}

// planFromScratch plans one placement without its previous plan.
func (pl *planner) planFromScratch(key api.PlacementKey, inputs resultKey, record *ledger.Placement) *result {
	pp := placementPlanner{planner: pl, current: &result{resultKey: inputs, commit: pl.InForce.Commit.Hash, placement: &Placement{Key: key, Spec: inputs.spec}}}
	pl.memo.bindings = pl.memo.bindings[:0]
	pp.plan(pp.current.placement, record)
	for _, c := range pp.current.placement.Clusters {
		c.keepBinding()
	}
	return pp.current
}

// failedResult is the result for a placement whose planning panicked: everything it holds is kept.
func failedResult(key api.PlacementKey, spec *hub.Placement, record *ledger.Placement, cause string) *result {
	r := &result{placement: &Placement{
		Key: key, Spec: spec, InternalError: "internal error: " + cause, Stack: string(debug.Stack()),
		Record: ledger.Placement{Index: -1},
	}}
	if record == nil {
		return r
	}
	r.placement.Record = *record
	for _, e := range record.Entries() {
		c := &OnCluster{Binding: &e.Binding, Content: noContent, Entry: e, latest: &e.Binding.Assigned}
		c.setCircumstances(&Circumstances{Deviation: e.Unusual().Deviation})
		if c.Binding.HasRevision() || c.Binding.Removing {
			kept := newWork(r.placement, c)
			kept.Keep, c.work = true, &kept
		}
		r.placement.Clusters = append(r.placement.Clusters, c)
	}
	return r
}

// While a commit to which a cluster is assigned is being loaded, the content of the cluster is not known, and no
// assignment there changes: an object that one placement gives up may be one that another is about to get, and must not
// be deleted in between. The cluster is paused until the commit is loaded. A commit that cannot be loaded pauses
// nothing.

// pauseClusters finds the clusters to pause, and plans the placements again that are on clusters whose pause has begun
// or ended.
func (pl *planner) pauseClusters() {
	now := pl.clustersLoading()
	changed := maps.Clone(now)
	maps.Copy(changed, pl.paused)
	maps.DeleteFunc(changed, func(cluster, _ string) bool { return now[cluster] == pl.paused[cluster] })
	if len(changed) == 0 {
		return
	}
	pl.pauseChanged = slices.Sorted(maps.Keys(changed))
	pl.paused, pl.memo.paused = now, now
	for i, r := range pl.results.list {
		if r.onAnyOf(pl.pauseChanged) {
			pl.planPlacement(i)
		}
	}
}

// clustersLoading returns the clusters whose held content is not known, each with a commit that is being loaded.
func (pl *planner) clustersLoading() map[string]string {
	out := map[string]string{}
	for _, r := range pl.results.list {
		if len(r.missing) == 0 {
			continue
		}
		for _, c := range r.placement.Clusters {
			known, loading := out[c.Binding.Cluster], c.Unusual().loading
			if loading != "" && (known == "" || loading < known) {
				out[c.Binding.Cluster] = loading
			}
		}
	}
	return out
}

// finish resolves conflicts and assembles the plan.
func (pl *planner) finish() *Plan {
	m := pl.memo
	p := &Plan{
		Members: pl.InForce.Clusters, Clusters: m.members.List, Left: m.suspensions.NotSuspended(slices.Clone(m.members.Left)),
		Commits: map[string]bool{}, Wake: pl.wake, at: pl.Now, Warnings: m.inForce.unusedOverrideWarnings(),
		Renames: pl.renamed,
	}
	for _, r := range pl.results.list {
		p.Wake = api.Earliest(p.Wake, r.wake)
		for commit := range r.missing {
			p.Commits[commit] = true
		}
	}
	changed, moved := pl.updateResults()
	placements := m.last.Placements.Edit(len(pl.results.list))
	for i, at := range pl.results.sorted {
		if now := cmp.Or(m.resolved[pl.results.planned[at]], pl.results.list[at].placement); now != placements.At(i) {
			placements.Set(i, now)
		}
	}
	p.Placements = placements.List()
	p.Works = worksOf(p, m.last)
	m.last = p
	if !moved && pl.unchanged {
		m.pruneContents(maps.Keys(changed))
	} else {
		m.pruneContents(maps.Keys(m.contents))
	}
	m.pruneCommits(func(s *hub.Snapshot) bool { return p.Commits[s.Commit.Hash] && pl.Past[s.Commit.Hash] == s })
	m.planned = m.common()
	return p
}

// updateResults makes the results of this call those that the next call compares with, and returns the changed ones. If a result that
// affects the resolution of conflicts has changed, it resolves them again.
func (pl *planner) updateResults() (changed map[api.PlacementKey]bool, moved bool) {
	m := pl.memo
	changed, moved = map[api.PlacementKey]bool{}, len(pl.results.list) != len(m.results.list)
	for i, r := range pl.results.list {
		if old := pl.lastResult(i); old != r {
			changed[pl.results.planned[i]], moved = true, moved || !r.sameObjects(old)
		}
	}
	m.results, m.spareResults = pl.results, m.results.list
	clear(m.spareResults)
	if moved {
		m.overlap = findOverlap(pl.results)
	}
	if moved || slices.ContainsFunc(m.overlap.claimants, func(key api.PlacementKey) bool { return changed[key] }) {
		m.resolved = pl.resolveConflicts()
	}
	return changed, moved
}

// Pending returns a plan that decides nothing yet: its Works are nil.
func Pending(inForce *hub.Snapshot) *Plan {
	var all []*Placement
	for _, spec := range inForce.Placements {
		all = append(all, &Placement{Key: spec.Key, Spec: spec, Pending: true, Record: ledger.Placement{Index: -1, Created: inForce.Commit.Time}})
	}
	return &Plan{Members: inForce.Clusters, Placements: sharedlist.Of(all...)}
}
