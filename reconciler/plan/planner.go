package plan

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A result is the plan of one placement, before conflicts with other placements are resolved,
// together with the inputs that it depends on. It is reused as long as they are the same.
type result struct {
	cacheKey
	placement *Placement
	// works are the works of its clusters before conflicts are resolved.
	works []clusterWork
	// contentsInUse are the contents that clusters are assigned or held until now.
	contentsInUse []*prepared
	// missingCommits are the commits that clusters are assigned to and whose content is not
	// known. loadingCommits are those of them that may still be loaded.
	missingCommits, loadingCommits []string
	// lostCommits are those of missingCommits that could not be loaded.
	lostCommits []string
	// claimedObjects are the objects that were yielded to others until now or assigned early,
	// by ID. counterparts are the placements that own them, and this one.
	claimedObjects []api.ID
	counterparts   []api.PlacementKey
	lastClaims     ledger.Claims
	// wake is when the result could change without new input; zero means never.
	wake time.Time

	// deletionHolds are the holds on deletions of the placement.
	deletionHolds deletionHolds

	// lastComparison caches the last comparison of two contents.
	lastComparison comparison

	// resolved is the placement after conflicts were resolved.
	resolved *Placement
}

// clusterWork is the work of one cluster.
type clusterWork struct {
	cluster string
	work    work.Work
}

// A planner has the state of one call of Resolve.
type planner struct {
	Input
	memo *Memo
	// results are those of this call; current is the one being computed.
	results map[api.PlacementKey]*result
	current *result
	wake    time.Time
	// renamed are the renames found by this call. unclear are the placements of which it is not
	// certain whether they were renamed, and why.
	renamed []ledger.Rename
	unclear map[api.PlacementKey]string
	// paused are the clusters on which no assignment may change, each with the commit that is
	// being loaded for it. pauseChanged are the clusters that were paused or released by this
	// call.
	paused       map[string]string
	pauseChanged []string
}

func newPlanner(in Input) *planner {
	pl := &planner{Input: in, memo: in.Memo, results: in.Memo.spareResults, paused: in.Memo.paused}
	if pl.results == nil {
		pl.results = map[api.PlacementKey]*result{}
	}
	pl.wake = earliest(pl.memo.fleet.update(in), pl.memo.suspensions.update(in))
	pl.memo.setHead(in.Head)
	return pl
}

// finish resolves conflicts and assembles the plan.
func (pl *planner) finish() *Plan {
	m := pl.memo
	p := &Plan{
		Members: pl.Head.Clusters, Clusters: m.fleet.list, Left: m.suspensions.notSuspended(m.fleet.leftClusters(pl.Ledger)),
		Commits: map[string]bool{}, Wake: pl.wake, Warnings: pl.unusedOverrideWarnings(),
		Renames: pl.renamed,
	}
	for _, r := range pl.results {
		p.Wake = earliest(p.Wake, r.wake)
		for _, commit := range r.missingCommits {
			p.Commits[commit] = true
		}
	}
	changed := m.works.update(m.results, pl.results)
	m.results, m.spareResults = pl.results, m.results
	clear(m.spareResults)
	if p.Placements, p.Works = pl.resolveConflicts(changed); p.Works == nil {
		p.Works = map[string][]work.Work{} // not nil, since there is a plan
	}
	m.prune(func(s *hub.Snapshot) bool { return p.Commits[s.Commit.Hash] && pl.Past[s.Commit.Hash] == s })
	return p
}

// planPlacement plans one placement, or reuses the previous result if its inputs are the same.
// If planning panics, the placement keeps what it holds, and the others are planned as usual.
func (pl *planner) planPlacement(key api.PlacementKey) {
	record := pl.Ledger.Placement(key)
	defer func() {
		if cause := recover(); cause != nil {
			pl.results[key] = failedResult(key, pl.memo.spec(key), record, fmt.Sprint(cause))
		}
	}()
	now := pl.resultKey(key, record)
	if old := pl.memo.results[key]; old != nil && old.cacheKey == now && pl.stillValid(old) {
		pl.results[key] = old
		return
	}
	pl.current = &result{cacheKey: now, placement: &Placement{Key: key, Spec: now.spec}}
	pl.plan(pl.current.placement, record)
	pl.results[key] = pl.current
}

// resultKey collects everything that the result for a placement depends on.
func (pl *planner) resultKey(key api.PlacementKey, record *ledger.Placement) cacheKey {
	in := cacheKey{
		spec: pl.memo.spec(key), fleetVersion: pl.memo.fleet.version, suspensionsVersion: pl.memo.suspensions.version,
		deleteAllowed: Allows(pl.Head.Commit.Message, key), unclearRename: pl.unclear[key],
	}
	if record != nil {
		in.recordVersion = record.Version()
		if in.successor = pl.results[record.Into]; in.successor != nil {
			in.deleteAllowed = in.deleteAllowed || Allows(pl.Head.Commit.Message, record.Into)
		}
		in.deleteAllowed = in.deleteAllowed || slices.ContainsFunc(record.Formerly, pl.allowsFormer)
	}
	if in.spec == nil {
		return in
	}
	if looksAtProperties(in.spec.Spec.Policy) {
		in.propertiesVersion = pl.memo.fleet.propertiesVersion
	}
	in.prepared = pl.memo.prepare(pl.Head, key)
	if others := pl.clustersOfOthers(in.spec); others != nil {
		in.others = fmt.Sprint(others)
	}
	return in
}

// allowsFormer reports whether the commit allows deletions under an earlier key of a placement
// that no other placement has taken since.
func (pl *planner) allowsFormer(key api.PlacementKey) bool {
	return pl.memo.spec(key) == nil && Allows(pl.Head.Commit.Message, key)
}

// stillValid reports whether a result is still valid apart from its key: planning did not
// panic, its wake time has not come, no commit it waits for has been loaded, and none of its
// clusters has changed.
func (pl *planner) stillValid(r *result) bool {
	if r.placement.InternalError != "" || !r.wake.IsZero() && !pl.Now.Before(r.wake) {
		return false
	}
	arrived := func(commit string) bool { return pl.Past[commit] != nil || pl.Lost[commit] != nil }
	readAgain := func(commit string) bool { return pl.Past[commit] != nil }
	return !slices.ContainsFunc(r.loadingCommits, arrived) && !slices.ContainsFunc(r.lostCommits, readAgain) && !r.onAnyOf(pl.memo.fleet.changed) && !r.onAnyOf(pl.pauseChanged)
}

// onAnyOf reports whether the placement holds one of the clusters.
func (r *result) onAnyOf(clusters []string) bool {
	return slices.ContainsFunc(clusters, func(cluster string) bool { return r.placement.On(cluster) != nil })
}

// failedResult is the result for a placement whose planning panicked: everything it holds is
// kept.
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
		b := e.Binding
		r.addClaims(e.Claims)
		r.placement.Clusters = append(r.placement.Clusters, &OnCluster{Binding: b, Entry: e, Latest: b.Assigned, Claims: e.Claims})
		if b.Released() || b.Removing {
			w := work.Work{Placement: key, Revision: b.Assigned, Keep: true, Abandon: record.Abandon}
			if spec != nil {
				w.Strategy, w.Drift = strategy(spec.Spec), spec.Annotations[api.DriftAnnotation]
			}
			r.works = append(r.works, clusterWork{b.Cluster, w})
		}
	}
	return r
}

// addClaims collects the objects and owners of a cluster's claims.
func (r *result) addClaims(c ledger.Claims) {
	if c.Empty() {
		return
	}
	if c.Identical(r.lastClaims) {
		return // most clusters have the same claims
	}
	r.lastClaims = c
	add := func(key api.PlacementKey) {
		if !slices.Contains(r.counterparts, key) {
			r.counterparts = append(r.counterparts, key)
		}
	}
	claim := func(id api.ID) {
		if i, found := slices.BinarySearchFunc(r.claimedObjects, id, api.ID.Compare); !found {
			r.claimedObjects = slices.Insert(r.claimedObjects, i, id)
		}
	}
	add(r.placement.Key)
	for _, y := range c.Yields {
		add(y.To)
		claim(y.ID)
	}
	for _, id := range c.Early {
		claim(id)
	}
}
