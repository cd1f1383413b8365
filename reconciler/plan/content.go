package plan

import (
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
	if left := c.Entry.Binding.Leftover; left != nil {
		c.leftover, _ = pl.loadContent(c, *left)
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
	if pl.stateOf(r.Commit) == commitLoading {
		c.loading = r.Commit
	}
	pl.recordMissing(r.Commit)
	return nil, false
}

// findContent finds the content of a revision for a cluster. It renders the placement for the cluster at each known
// commit, with the current labels and with those recorded in the revision, until the hash matches. The content is nil
// if the revision is known and cannot be rendered.
func (pl *placementPlanner) findContent(name string, r placement.Revision) (from *prepared, content *work.Rendered, known bool) {
	cluster, _ := pl.memo.fleet.cluster(name)
	for p := range pl.knownContents(r.Commit) {
		if content, known := p.renderedWithHash(cluster, r); known {
			pl.memo.keepContent(pl.current.placement.Key, p)
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
			for _, p := range pl.memo.contents[key] {
				if !yield(p) {
					return
				}
			}
		}
		for i, hash := range append([]string{commit}, slices.Sorted(maps.Keys(pl.Past))...) {
			s := pl.Past[hash]
			if s == nil || i > 0 && (hash == commit || hash == pl.InForce.Commit.Hash) {
				continue
			}
			for _, key := range keys {
				if p := pl.memo.prepare(s, key); p != nil && p.renderer != nil && !yield(p) {
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
	pl.current.missing[commit] = pl.stateOf(commit)
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
			known := out[c.Binding.Cluster]
			if c.loading != "" && (known == "" || c.loading < known) {
				out[c.Binding.Cluster] = c.loading
			}
		}
	}
	return out
}

// isPaused reports whether an assignment would change on the cluster and may not.
func (pl *planner) isPaused(c *OnCluster) bool {
	return pl.paused[c.Binding.Cluster] != "" && !c.Binding.Removing && (!c.UpToDate() || c.Binding.Unscheduled)
}

// After the ledger was lost, nothing is recorded of the runs in Git. One of them is in force: the newest, which has the content of the commit
// that last changed its file, so that neither it nor its approvals are for content that came later. The others are superseded by it.

// newestRun returns the run in force after the ledger was lost; nil if there is none, or if the ledger was not lost. While pending is not
// empty, the run is not known yet, and pending says why.
func (pl runPlanner) newestRun(p *Placement, declared []*hub.StagedRun) (newest *hub.StagedRun, pending string) {
	if pl.InForce.RunChanges == nil || len(p.Record.Runs) > 0 {
		return nil, ""
	}
	var automatic *hub.StagedRun
	for _, d := range declared {
		switch {
		case d.Automatic:
			automatic = d
		case d.State != api.RunInitialize && (newest == nil || !pl.appearedIn(d).Time.Before(pl.appearedIn(newest).Time)):
			newest = d
		}
	}
	if newest == nil {
		return automatic, ""
	}
	commit := pl.appearedIn(newest).Hash
	if commit != "" && commit != pl.InForce.Commit.Hash {
		if pl.recordMissing(commit); pl.stateOf(commit) == commitLoading {
			return nil, "the ledger was lost, and commit " + commit + ", in which run " + newest.Name + " appeared, is being loaded"
		}
	}
	if content, _ := pl.appeared(p, newest); automatic != nil && content.Hash != pl.current.prepared.fingerprintOf() {
		return automatic, "" // the content has changed since
	}
	return newest, ""
}

// appearedIn returns the commit in which a committed run has appeared: the one that last changed its file. Of a run that a kustomization has
// built that is not known, so it counts as the oldest, with the content of the commit in force. The hash is empty if no commit was found.
func (pl runPlanner) appearedIn(d *hub.StagedRun) hub.Commit {
	if d.Origin.Kustomization != "" {
		return hub.Commit{Hash: pl.InForce.Commit.Hash}
	}
	return pl.InForce.RunChanges[d.Origin.Path]
}

// appeared returns the content of the commit in which a run has appeared, if that is loaded, or why it is not known.
func (pl runPlanner) appeared(p *Placement, d *hub.StagedRun) (content placement.Revision, failed string) {
	content = placement.Revision{Commit: pl.InForce.Commit.Hash, Hash: pl.current.prepared.fingerprintOf()}
	commit := pl.appearedIn(d).Hash
	if commit == "" {
		return placement.Revision{}, "the ledger was lost, and the commit in which it appeared is too old to be found"
	}
	if err := pl.Lost[commit]; err != nil {
		return content, "the ledger was lost, and commit " + commit + ", in which it appeared, cannot be loaded: " + err.Error()
	}
	if s := pl.Past[commit]; s != nil && commit != content.Commit {
		if old := pl.memo.prepare(s, p.Key); old != nil && old.renderer != nil && old.fingerprintOf() != content.Hash {
			return placement.Revision{Commit: commit, Hash: old.fingerprintOf()}, ""
		}
	}
	return content, ""
}

// setAppeared sets the content of a new run: that of the commit in force, or after the ledger was lost that of the commit in which it appeared.
// It reports whether the run is over with that: it is superseded, or its content is not known.
func (pl runPlanner) setAppeared(p *Placement, d, newest *hub.StagedRun, r *placement.Run) (over bool) {
	switch r.Content = (placement.Revision{Commit: pl.InForce.Commit.Hash, Hash: pl.current.prepared.fingerprintOf()}); {
	case newest == nil || d.State == api.RunInitialize:
	case d == newest:
		r.Content, r.Failed = pl.appeared(p, d)
	default:
		r.Content = placement.Revision{Commit: pl.appearedIn(d).Hash}
		r.Started, r.SupersededBy, r.SupersededAt = pl.Now, newest.Name, pl.Now
	}
	return r.Failed != "" || r.SupersededBy != ""
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
