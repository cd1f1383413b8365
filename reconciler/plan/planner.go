package plan

import (
	"cmp"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
)

// A result is the plan of one placement, before conflicts with other placements are resolved, together with the inputs
// that it depends on. It is reused as long as they are the same.
type result struct {
	resultKey
	placement *Placement
	// commit is the commit in force with which it was planned.
	commit string
	// contentsInUse are the contents that clusters are assigned or held until now.
	contentsInUse []*prepared
	// missing are the commits that clusters are assigned to and whose content is not known.
	missing map[string]commitState
	// wake is when the result could change without new input; zero means never.
	wake time.Time
}

// A planner has the state of one call of Resolve.
type planner struct {
	Input
	memo    *Memo
	results map[api.PlacementKey]*result // of this call
	wake    time.Time
	// unchanged says that what the keys of all results depend on is the same as in the last call.
	unchanged bool
	// renamed are the renames found by this call. unclear are the placements of which it is not certain whether they
	// were renamed, and why.
	renamed []ledger.Rename
	unclear map[api.PlacementKey]string
	// paused are the clusters on which no assignment may change, each with the commit that is being loaded for it.
	// pauseChanged are the clusters that were paused or released by this call.
	paused       map[string]string
	pauseChanged []string
}

// A placementPlanner plans one placement: it computes its result, which is not complete before.
type placementPlanner struct {
	planner *planner
	current *result
}

func newPlanner(in Input) *planner {
	pl := &planner{Input: in, memo: in.Memo, results: in.Memo.spareResults, paused: in.Memo.paused}
	if pl.results == nil {
		pl.results = map[api.PlacementKey]*result{}
	}
	pl.wake = fleet.Earliest(
		pl.memo.members.Update(fleet.Input{Declared: in.InForce.Clusters, Ledger: in.Ledger, Observed: in.Observed, Now: in.Now}),
		pl.memo.suspensions.Update(in.Ledger, in.Now))
	pl.memo.setInForce(in.InForce)
	pl.unchanged = pl.memo.common() == pl.memo.planned
	return pl
}

// common is what the keys of all results depend on.
type common struct {
	inForce                                    *commitCache
	fleet, properties, namespaces, suspensions uint64 // versions
}

func (m *Memo) common() common {
	return common{m.inForce, m.members.Version, m.members.PropertiesVersion, m.members.NamespacesVersion, m.suspensions.Version}
}

// updateResults makes the results of this call those that the next call compares with, and returns the changed ones. If a result that
// affects the resolution of conflicts has changed, it resolves them again.
func (pl *planner) updateResults() (changed map[api.PlacementKey]bool, moved bool) {
	m := pl.memo
	changed, moved = map[api.PlacementKey]bool{}, len(pl.results) != len(m.results)
	for key, r := range pl.results {
		if old := m.results[key]; old != r {
			changed[key], moved = true, moved || !r.sameObjects(old)
		}
	}
	m.results, m.spareResults = pl.results, m.results
	clear(m.spareResults)
	if moved {
		m.overlap = findOverlap(pl.results)
	}
	if moved || slices.ContainsFunc(m.overlap.claimants, func(key api.PlacementKey) bool { return changed[key] }) {
		m.resolved = pl.resolveConflicts()
	}
	return changed, moved
}

// finish resolves conflicts and assembles the plan.
func (pl *planner) finish() *Plan {
	m := pl.memo
	p := &Plan{
		Members: pl.InForce.Clusters, Clusters: m.members.List, Left: m.suspensions.NotSuspended(m.members.Left(pl.Ledger)),
		Commits: map[string]bool{}, Wake: pl.wake, at: pl.Now, Warnings: pl.unusedOverrideWarnings(),
		Renames: pl.renamed,
	}
	for _, r := range pl.results {
		p.Wake = fleet.Earliest(p.Wake, r.wake)
		for commit := range r.missing {
			p.Commits[commit] = true
		}
	}
	changed, moved := pl.updateResults()
	keys := pl.order().sorted
	placements := m.last.Placements.Edit(len(keys))
	for i, key := range keys {
		if now := cmp.Or(m.resolved[key], pl.results[key].placement); now != placements.At(i) {
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

// planPlacement plans one placement, or reuses the previous result if its inputs are the same. If planning panics, the
// placement keeps what it holds, and the others are planned as usual.
func (pl *planner) planPlacement(key api.PlacementKey) {
	record := pl.Ledger.Placement(key)
	defer func() {
		if cause := recover(); cause != nil {
			failed := failedResult(key, pl.memo.spec(key), record, fmt.Sprint(cause))
			if p := failed.placement; p.Spec != nil && pl.FirstPlan {
				p.Record.LostRuns = pl.lostRuns(p.Key, p.Record.LostRuns)
				p.RecordChanged = len(p.Record.LostRuns) > 0
			}
			pl.results[key] = failed
		}
	}()
	old := pl.memo.results[key]
	inputs := pl.keyOf(key, record, old)
	if old != nil && old.resultKey == inputs && pl.stillValid(old) {
		pl.results[key] = old
		return
	}
	if r := pl.follow(old, inputs, record); r != nil {
		if pl.memo.check != nil {
			pl.memo.check(key, r.placement.difference(pl.planFromScratch(key, inputs, record).placement))
		}
		pl.results[key] = r
		return
	}
	r := pl.planFromScratch(key, inputs, record)
	if old != nil {
		pl.memo.spareClusters = r.placement.reuseClusters(old.placement, pl.memo.spareClusters)
	}
	pl.results[key] = r
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

// keyOf collects everything that the result for a placement depends on. The old result is that of the last call, and may be nil.
func (pl *planner) keyOf(key api.PlacementKey, record *ledger.Placement, old *result) resultKey {
	if pl.unchanged && old != nil && record != nil && old.successor == nil && old.others == "" && record.Version() == old.recordVersion &&
		record.Into == (api.PlacementKey{}) && pl.unclear[key] == old.unclearRename && pl.memo.inForce.placements[key] == old.prepared {
		return old.resultKey
	}
	in := resultKey{
		spec: pl.memo.spec(key), fleetVersion: pl.memo.members.Version, suspensionsVersion: pl.memo.suspensions.Version,
		deleteAllowed: Allows(pl.InForce.Commit.Message, key), unclearRename: pl.unclear[key],
	}
	if record != nil {
		in.recordVersion = record.Version()
		if in.successor = pl.results[record.Into]; in.successor != nil {
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

// stillValid reports whether a result is still valid apart from its key: planning did not panic, its wake time has not
// come, no commit it waits for was loaded or lost since, and none of its clusters has changed.
func (pl *planner) stillValid(r *result) bool {
	if r.placement.InternalError != "" || !r.wake.IsZero() && !pl.Now.Before(r.wake) {
		return false
	}
	for commit, was := range r.missing {
		if pl.stateOf(commit) != was {
			return false
		}
	}
	return !r.onAnyOf(pl.memo.members.Changed) && !r.onAnyOf(pl.pauseChanged)
}

func (r *result) onAnyOf(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(cluster string) bool { return r.placement.On(cluster) != nil })
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
