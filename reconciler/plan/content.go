package plan

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// loadPreviousContent sets the content that the cluster was assigned before this plan, or before its removal began, and
// the leftover content, since some of it may still be on the cluster.
func (pl *placementPlanner) loadPreviousContent(c *OnCluster) {
	if c.Entry == nil || !c.Entry.Binding.HasRevision() {
		return
	}
	var known bool
	c.PreviousContent, known = pl.loadContent(c, c.Entry.Binding.Assigned)
	c.notRenderable = known && c.PreviousContent == nil
	if left := c.Entry.Binding.Unusual().Leftover; left != nil {
		content, _ := pl.loadContent(c, *left)
		c.change(func(s *Circumstances) { s.leftover = content })
	}
}

// loadContent returns the content of a revision that the cluster was assigned, as findContent does, and requests its
// commit if it is not known.
func (pl *placementPlanner) loadContent(c *OnCluster, r placement.Revision) (content *work.Rendered, known bool) {
	p, content, known := pl.findContent(c.Binding.Cluster, r)
	if known {
		pl.markInUse(p)
		return content, true
	}
	if pl.planner.stateOf(r.Commit) == commitLoading {
		c.change(func(s *Circumstances) { s.loading = r.Commit })
	}
	pl.recordMissing(r.Commit)
	return nil, false
}

// findContent finds the content of a revision for a cluster. It renders the placement for the cluster at each known
// commit, with the current labels and with those recorded in the revision, until the hash matches. The content is nil
// if the revision is known and cannot be rendered.
func (pl *placementPlanner) findContent(name string, r placement.Revision) (from *prepared, content *work.Rendered, known bool) {
	cluster, _ := pl.planner.memo.members.Cluster(name)
	for p := range pl.knownContents(r.Commit) {
		if content, known := p.renderedWithHash(cluster, r); known {
			pl.planner.memo.keepContent(pl.current.placement.Key, p)
			return p, content, true
		}
	}
	return nil, nil, false
}

// knownContents iterates over the known contents of the placement, under its key and its earlier keys: first those in
// memory, then those of the loaded commits, beginning with the given commit.
func (pl *placementPlanner) knownContents(commit string) iter.Seq[*prepared] {
	keys := append([]api.PlacementKey{pl.current.placement.Key}, pl.current.placement.Record.Formerly...)
	return func(yield func(*prepared) bool) {
		for _, key := range keys {
			for _, p := range pl.planner.memo.contents[key] {
				if !yield(p) {
					return
				}
			}
		}
		for i, hash := range append([]string{commit}, slices.Sorted(maps.Keys(pl.planner.Past))...) {
			s := pl.planner.Past[hash]
			if s == nil || i > 0 && (hash == commit || hash == pl.planner.InForce.Commit.Hash) {
				continue
			}
			for _, key := range keys {
				if p := pl.planner.memo.prepare(s, key); p != nil && p.renderer != nil && !yield(p) {
					return
				}
			}
		}
	}
}

// renderedWithHash renders the content for a cluster with its current labels or those of a revision, and returns it if
// it has the hash of the revision.
func (p *prepared) renderedWithHash(c placement.Cluster, r placement.Revision) (content *work.Rendered, known bool) {
	rendered, err := p.renderer.For(c)
	if rendered.Hash != r.Hash && p.renderer.Labels(c) != r.Labels {
		rendered, err = p.renderer.For(work.WithLabels(c, r))
	}
	switch {
	case rendered.Hash != r.Hash:
		return nil, false
	case err != nil:
		return nil, true
	}
	return rendered, true
}

// markInUse records that clusters are, or were until now, assigned to a content.
func (pl *placementPlanner) markInUse(p *prepared) {
	if !slices.Contains(pl.current.contentsInUse, p) {
		pl.current.contentsInUse = append(pl.current.contentsInUse, p)
	}
}

// recordMissing records that the content of a commit is needed but not known.
func (pl *placementPlanner) recordMissing(commit string) {
	if pl.current.missing == nil {
		pl.current.missing = map[string]commitState{}
	}
	pl.current.missing[commit] = pl.planner.stateOf(commit)
}

// A commitState says whether a commit can be read.
type commitState string

const (
	commitLoaded  commitState = "loaded"
	commitLoading commitState = "loading"
	commitLost    commitState = "lost"
)

func (pl *planner) stateOf(commit string) commitState {
	switch {
	case commit == pl.InForce.Commit.Hash || pl.Past[commit] != nil:
		return commitLoaded
	case pl.Lost[commit] != nil:
		return commitLost
	}
	return commitLoading
}

// While a commit to which a cluster is assigned is being loaded, the content of the cluster is not known, and no
// assignment there changes: an object that one placement gives up may be one that another is about to get, and must not
// be deleted in between. The cluster is paused until the commit is loaded. A commit that cannot be loaded pauses
// nothing.

// pauseClusters finds the clusters to pause, and plans the placements again that are on clusters whose pause has begun
// or ended.
func (pl *planner) pauseClusters(keys []api.PlacementKey) {
	now := pl.clustersLoading()
	changed := maps.Clone(now)
	maps.Copy(changed, pl.paused)
	maps.DeleteFunc(changed, func(cluster, _ string) bool { return now[cluster] == pl.paused[cluster] })
	if len(changed) == 0 {
		return
	}
	pl.pauseChanged = slices.Sorted(maps.Keys(changed))
	pl.paused, pl.memo.paused = now, now
	for _, key := range keys {
		if pl.results[key].onAnyOf(pl.pauseChanged) {
			pl.planPlacement(key)
		}
	}
}

// clustersLoading returns the clusters whose held content is not known, each with a commit that is being loaded.
func (pl *planner) clustersLoading() map[string]string {
	out := map[string]string{}
	for _, r := range pl.results {
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

// isPaused reports whether an assignment would change on the cluster and may not.
func (pl *planner) isPaused(c *OnCluster) bool {
	return pl.paused[c.Binding.Cluster] != "" && !c.Binding.Removing && (!c.UpToDate() || c.Binding.Unscheduled)
}

// If the ledger was empty at the start, runs found in Git may be older than this process (ledger.Placement.LostRuns). The run started last takes
// effect, with the content of the commit in which it appeared, so that existing approvals do not apply to newer content. All other lost runs are
// recorded as superseded.

// emptyLedger is why nothing is recorded of runs that Git has.
const emptyLedger = "the ledger was empty at the start (lost, or this is the first start)"

// lostRuns returns the names of the lost runs of a placement: of those recorded as lost before, the ones that Git still has, and in the first plan
// all that Git has. On a first start nothing is found on members; then runs that kustomizations build, of which it is not known when they
// appeared, are new.
func (pl *planner) lostRuns(key api.PlacementKey, before []string) (names []string) {
	for _, d := range pl.memo.inForce.runs[key] {
		found := pl.FirstPlan && (pl.Rebuilt || d.Origin.Kustomization == "")
		if !d.Automatic && (found || slices.Contains(before, d.Name)) {
			names = append(names, d.Name)
		}
	}
	return names
}

// newestRun returns the run in force after the ledger was lost; nil if there is none, or if the ledger was not lost. While pending is not
// empty, the run is not known yet, and pending says why.
func (pl runPlanner) newestRun(p *Placement, declared []*hub.StagedRun) (newest *hub.StagedRun, pending string) {
	switch {
	case len(p.Record.LostRuns) == 0 || len(p.Record.Runs) > 0:
		return nil, ""
	case pl.planner.InForce.RunHistoryErr != nil:
		return nil, emptyLedger + ", and the Git history could not be read; retrying: " + pl.planner.InForce.RunHistoryErr.Error()
	case pl.planner.InForce.RunHistory == nil:
		return nil, emptyLedger + ", and the Git history has not been read"
	}
	var automatic *hub.StagedRun
	for _, d := range declared {
		switch {
		case d.Automatic:
			automatic = d
		case d.State != api.RunInitialize && (newest == nil || !pl.startedBefore(p, d, newest)):
			newest = d
		}
	}
	for _, d := range declared {
		if d == newest || d.State == api.RunInitialize {
			pending = cmp.Or(pending, pl.loadAppeared(p, d))
		}
	}
	switch {
	case pending != "":
		return nil, pending
	case newest == nil:
		return automatic, ""
	}
	if content, _ := pl.appeared(p, newest); automatic != nil && content.Hash != pl.current.prepared.fingerprintOf() {
		return automatic, "" // the content has changed since
	}
	return newest, ""
}

func isLost(p *Placement, d *hub.StagedRun) bool {
	return !d.Automatic && slices.Contains(p.Record.LostRuns, d.Name)
}

// startedBefore reports whether a committed run was started before another one.
func (pl runPlanner) startedBefore(p *Placement, d, other *hub.StagedRun) bool {
	if lost := isLost(p, d); lost != isLost(p, other) {
		return lost
	}
	return pl.historyOf(p, d).Started.Time.Before(pl.historyOf(p, other).Started.Time)
}

// historyOf returns the history of a run. One that is not lost appears in the commit in force.
func (pl runPlanner) historyOf(p *Placement, d *hub.StagedRun) hub.RunHistory {
	if !isLost(p, d) {
		return hub.RunHistory{Appeared: pl.planner.InForce.Commit, Started: pl.planner.InForce.Commit}
	}
	return pl.planner.InForce.RunHistory[d.Manifest.ID]
}

// loadAppeared returns why the content of the commit in which a run has appeared is not known yet; empty if nothing more will be known.
func (pl runPlanner) loadAppeared(p *Placement, d *hub.StagedRun) (pending string) {
	commit := pl.historyOf(p, d).Appeared.Hash
	if commit == "" || commit == pl.planner.InForce.Commit.Hash {
		return ""
	}
	pl.recordMissing(commit)
	where := emptyLedger + ", and commit " + commit + ", in which run " + d.Name + " appeared, "
	switch pl.planner.stateOf(commit) {
	case commitLoading:
		return where + "is being loaded"
	case commitLost:
		return where + "cannot be loaded, which is retried; or commit a run with another name: " + pl.planner.Lost[commit].Error()
	}
	return ""
}

// appeared returns the content of the commit in which a run has appeared, or why it is not known.
func (pl runPlanner) appeared(p *Placement, d *hub.StagedRun) (content placement.Revision, failed string) {
	commit := pl.historyOf(p, d).Appeared.Hash
	switch {
	case !isLost(p, d): // the commit in force may have no hash, as a directory has none
		return placement.Revision{Commit: commit, Hash: pl.current.prepared.fingerprintOf()}, ""
	case d.Index != "":
		return placement.Revision{}, emptyLedger + ", and with it which content has the number " + d.Index
	case commit == "" && d.Origin.Kustomization != "":
		return placement.Revision{}, emptyLedger + ", and of a run that a kustomization builds it cannot be found in which commit it appeared"
	case commit == "":
		return placement.Revision{}, emptyLedger + ", and the commit in which it appeared is too old to be found"
	case commit == pl.planner.InForce.Commit.Hash:
		return placement.Revision{Commit: commit, Hash: pl.current.prepared.fingerprintOf()}, ""
	}
	if s := pl.planner.Past[commit]; s != nil && slices.ContainsFunc(s.Runs, func(old *hub.StagedRun) bool { return old.Name == d.Name && old.Placement == d.Placement }) {
		if old := pl.planner.memo.prepare(s, p.Key); old != nil && old.renderer != nil {
			if hash := old.fingerprintOf(); hash != pl.current.prepared.fingerprintOf() {
				return placement.Revision{Commit: commit, Hash: hash}, ""
			}
			return placement.Revision{Commit: pl.planner.InForce.Commit.Hash, Hash: pl.current.prepared.fingerprintOf()}, ""
		}
	}
	return placement.Revision{Commit: commit}, emptyLedger + ", and commit " + commit + ", in which it seems to have appeared, has no content for it"
}

// setAppeared sets the content of a new run: that of the commit in force, or after the ledger was lost that of the commit in which it appeared.
// It reports whether the run is over with that: it is superseded, or its content is not known.
func (pl runPlanner) setAppeared(p *Placement, d, newest *hub.StagedRun, r *placement.Run) (over bool) {
	if newest == nil || d == newest || d.State == api.RunInitialize {
		r.Content, r.Failed = pl.appeared(p, d)
		return r.Failed != ""
	}
	r.Content = placement.Revision{Commit: pl.historyOf(p, d).Appeared.Hash}
	r.Started, r.SupersededBy, r.SupersededAt = pl.planner.Now, newest.Name, pl.planner.Now
	return true
}

// setContent makes a run bring the content with the number that its manifest asks for. It returns why it cannot.
func setContent(p *Placement, d *hub.StagedRun, r *placement.Run) string {
	n, err := strconv.Atoi(d.Index)
	if err != nil || n == p.Record.Index {
		return "" // the one in force; the loader has refused invalid numbers
	}
	for _, old := range p.Record.Revisions {
		if old.Index == n && old.Content.Commit != "" {
			r.Index, r.Content = n, old.Content
			return ""
		}
	}
	return fmt.Sprintf("no resourceSnapshots with index `%d` found for placement `%s`", n, p.Key.Namespace+"/"+p.Key.Name)
}
