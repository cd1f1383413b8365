package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// recordProven records that the newest content is available on every cluster, with the first commit that had it. Empty
// content and content with held deletions do not count, since nobody wants to roll back to them.
func (pl *placementPlanner) recordProven(p *Placement) {
	if !p.Rollout.Settled || p.Assigned == 0 || p.Spec.Spec.Strategy.ReportsDiff() || len(pl.current.prepared.renderer.Manifests()) == 0 {
		return
	}
	hash, before := pl.current.prepared.fingerprintOf(), p.Record.Proven.Hash
	if hash == before || !pl.planner.settled(p) || slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool { return c.holdsDeletions() || c.Unbuilt() }) {
		return
	}
	if before != "" {
		earlier := slices.DeleteFunc(slices.Clone(p.Record.ProvenBefore), func(h string) bool { return h == before || h == hash })
		p.Record.ProvenBefore = append(earlier[max(0, len(earlier)+1-maxRevisions):], before)
	}
	p.Record.Proven = placement.Revision{Commit: pl.planner.InForce.Commit.Hash, Hash: hash}
}

func (c *OnCluster) holdsDeletions() bool {
	held, _ := c.HeldDeletions()
	return len(held) > 0
}

// assignProven assigns the proven content, which was the last to be available on every cluster, to clusters that join a
// stopped rollout. It reports whether any cluster can get it. If its commit has to be loaded, such clusters wait.
func (pl *placementPlanner) assignProven(p *Placement, targets []rollout.Target) bool {
	assigned := false
	for i := range targets {
		b := &targets[i]
		if b.HasRevision() || b.Unscheduled || b.Removing || b.Latest == (placement.Revision{}) {
			continue
		}
		proven := pl.contentOf(p, p.Record.Proven)
		if proven == nil {
			return false
		}
		cluster, _ := pl.planner.memo.members.Cluster(b.Cluster)
		content, err := proven.renderer.For(cluster)
		if err != nil || content.Hash == "" {
			continue
		}
		b.Proven = placement.Revision{Commit: p.Record.Proven.Commit, Hash: content.Hash, Labels: proven.renderer.Labels(cluster)}
		p.On(b.Cluster).change(func(s *Circumstances) { s.provenContent = content })
		pl.markInUse(proven)
		assigned = true
	}
	return assigned
}

// contentOf returns the content with a fingerprint; nil if it is not known. Then its commit is loaded.
func (pl *placementPlanner) contentOf(p *Placement, want placement.Revision) *prepared {
	if want.Commit == "" {
		return nil
	}
	for known := range pl.knownContents(want.Commit) {
		if known.fingerprintOf() == want.Hash {
			pl.planner.memo.keepContent(p.Key, known)
			return known
		}
	}
	pl.recordMissing(want.Commit)
	return nil
}

func (p *prepared) fingerprintOf() string {
	if p.fingerprint == "" {
		p.fingerprint = p.renderer.Fingerprint()
	}
	return p.fingerprint
}

// A FailedContent is the content of the commit in force, which has failed in a run, and was rolled back.
type FailedContent struct {
	// Run is the run in which it failed, and Commit the newest commit that has brought it. Back is the last run that has finished.
	Run, Back *placement.Run
	Commit    string
}

// failedContent returns the newest content of a placement if it has failed; nil if it has not, or if no run has finished.
func failedContent(r *ledger.Placement, fingerprint string) *FailedContent {
	i := slices.IndexFunc(r.Runs, func(run placement.Run) bool { return run.RolledBack != "" && run.Content.Hash == fingerprint })
	to := lastFinished(r.Runs)
	if i < 0 || to < 0 {
		return nil
	}
	out := &FailedContent{Run: &r.Runs[i], Back: &r.Runs[to], Commit: r.Runs[i].Content.Commit}
	for _, revised := range r.Revisions {
		if revised.Content.Hash == fingerprint {
			out.Commit = revised.Content.Commit
		}
	}
	return out
}
