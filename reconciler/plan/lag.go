package plan

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
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

// settled reports whether every cluster has its newest content, and all of it is available. What a paused cluster would
// get is not known to the rollout, and is not what it has.
func (pl *planner) settled(p *Placement) bool {
	return p.Rollout.Settled && !slices.ContainsFunc(p.Clusters, pl.isPaused)
}

// missing returns what is not fulfilled of the policy, without the clusters that the placement holds.
func (p *Placement) missing() fulfilment.Tally {
	f := fulfilment.Placement{Unscheduled: !p.Schedule.Fulfilled, Short: p.Schedule.Wanted - p.Schedule.Found, NoMembers: p.NoMembers}
	for _, a := range p.Absent {
		f.Absent = append(f.Absent, a.Usability)
	}
	return f.Of()
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
	held := int(max(c.Binding.Index, c.Binding.SameAs))
	if c.UpToDate() || !c.Binding.HasRevision() {
		held = p.Record.Index - 1
	}
	out := Lag{Commits: max(1, p.Record.Index-held), Since: p.Record.RevisedAt(held + 1)}
	if c.Binding.BoundAt.After(out.Since) {
		out.Since = c.Binding.BoundAt
	}
	if free := c.Binding.Unusual().FreeAt; !c.Binding.Deferred && free.After(out.Since) {
		out.Since = free
	}
	return out
}

// holdsLatest reports whether all of the latest content was applied once, even if somebody has changed objects since.
func (c *OnCluster) holdsLatest() bool {
	return c.UpToDate() && c.Entry != nil && c.Entry.Binding.Assigned == c.Binding.Assigned && !c.Entry.AppliedAt().IsZero()
}
