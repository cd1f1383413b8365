package plan

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// maxRevisions limits the revisions in the record of a placement.
const maxRevisions = 10

// startRollout records that the content of a placement has changed and that its rollout starts.
func (pl *placementPlanner) startRollout(p *Placement) {
	seen := pl.planner.InForceSeenAt
	if seen.IsZero() {
		seen = pl.planner.Now
	}
	r := &p.Record
	r.Index++
	revised := ledger.Revised{Index: r.Index, At: seen}
	if p.Spec.Spec.Strategy.Type == api.External {
		revised.Content = placement.Revision{Commit: pl.planner.InForce.Commit.Hash, Hash: pl.current.prepared.fingerprintOf()}
	}
	r.Revisions = append(slices.Clone(r.Revisions[max(0, len(r.Revisions)+1-maxRevisions):]), revised)
	r.RolloutStarted, r.RolloutFinished = seen, time.Time{}
}

// finishRollout records when the newest content has become available on every cluster that the policy asks for, also if
// it asks for none.
func (pl *placementPlanner) finishRollout(p *Placement) {
	if r := &p.Record; r.RollingOut() && pl.planner.settled(p) && p.missing().Fulfilled() {
		r.RolloutFinished = pl.planner.Now
	}
}

// missing returns what is not fulfilled of the policy, without the clusters that the placement holds.
func (p *Placement) missing() fulfilment.Tally {
	f := fulfilment.Placement{Unscheduled: !p.Schedule.Fulfilled, Short: p.Schedule.Wanted - p.Schedule.Found, NoMembers: p.NoMembers}
	for _, a := range p.Absent {
		f.Absent = append(f.Absent, a.Usability)
	}
	return f.Of()
}

// recordProven records that the newest content is available on every cluster, with the first commit that had it. Empty
// content and content with blocked deletions do not count, since nobody wants to roll back to them.
func (pl *placementPlanner) recordProven(p *Placement) {
	if !p.Rollout.Settled || p.Assigned == 0 || p.Spec.Spec.Strategy.ReportsDiff() || len(pl.current.prepared.renderer.Manifests()) == 0 {
		return
	}
	hash, before := pl.current.prepared.fingerprintOf(), p.Record.Proven.Hash
	if hash == before || !pl.planner.settled(p) || slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool { return c.blocksDeletions() || c.Unbuilt() }) {
		return
	}
	if before != "" {
		earlier := slices.DeleteFunc(slices.Clone(p.Record.ProvenBefore), func(h string) bool { return h == before || h == hash })
		p.Record.ProvenBefore = append(earlier[max(0, len(earlier)+1-maxRevisions):], before)
	}
	p.Record.Proven = placement.Revision{Commit: pl.planner.InForce.Commit.Hash, Hash: hash}
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

// wasProven reports whether a content was available on every cluster before.
func (p *Placement) wasProven(fingerprint string) bool {
	return fingerprint == p.Record.Proven.Hash || slices.Contains(p.Record.ProvenBefore, fingerprint)
}

// A Lag says how far a cluster is behind the commit in force. It is zero if the cluster has applied the content of that
// commit.
type Lag struct {
	// Commits counts the changes of the placement's content that the cluster has not fully applied.
	Commits int
	// Since is when the first of them was seen, when the cluster was selected, or when a freeze or a window that had kept them from
	// it ended, whichever was last; zero if none was recorded. While they are kept from it, the last does not count.
	Since time.Time
}

// Lag returns how far a cluster of the placement is behind the commit in force.
func (p *Placement) Lag(c *OnCluster) Lag {
	if p.Spec == nil || c.Binding.Unscheduled || c.Binding.Removing || c.Latest().Hash == "" || p.Spec.Spec.Strategy.ReportsDiff() || c.holdsLatest() {
		return Lag{}
	}
	had := int(max(c.Binding.Index, c.Binding.SameAs))
	if c.UpToDate() || !c.Binding.HasRevision() {
		had = p.Record.Index - 1
	}
	out := Lag{Commits: max(1, p.Record.Index-had), Since: p.Record.RevisedAt(had + 1)}
	if c.Binding.BoundAt.After(out.Since) {
		out.Since = c.Binding.BoundAt
	}
	if free := c.Binding.Unusual().FreeAt; !c.Binding.Deferred && free.After(out.Since) {
		out.Since = free
	}
	return out
}
