package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
)

// Input is everything a plan depends on. Resolve changes nothing in it but Memo.
type Input struct {
	// InForce is the commit in force.
	InForce *hub.Snapshot
	// Past has the loaded snapshots of other commits that clusters are assigned to, by hash.
	Past map[string]*hub.Snapshot
	// Lost has the commits that cannot be loaded, with the error.
	Lost   map[string]error
	Ledger *ledger.Ledger
	// Observed overrides what the ledger knows about clusters, by name. Offline plans use it. It may be nil.
	Observed map[string]placement.Cluster
	// Owned are the IDs of the objects of each placement, for a forecast. For a placement that is not in the map they
	// are determined from the commits and Memo. It may be nil.
	Owned map[api.PlacementKey][]api.ID
	// MaxUnreachable is how many unreachable clusters, or which share of the wanted clusters, a rollout may skip; nil
	// means all.
	MaxUnreachable *intstr.IntOrString
	// AvailableTimeout is how long a cluster may take to become available before its update counts as failed; an
	// annotation of a placement overrides it. Zero means no limit.
	AvailableTimeout time.Duration
	// RepairAfter is how long a cluster has to be unavailable by itself before it is updated outside of the budget.
	RepairAfter time.Duration
	Now         time.Time
	// InForceSeenAt is when InForce was first seen, before it was loaded; zero means Now.
	InForceSeenAt time.Time
	// ShortDecisions limits the decisions about clusters that are not selected to the number of missing clusters. In a
	// large fleet they are most of the decisions.
	ShortDecisions bool
	// Rebuilt says that the ledger was lost and rebuilt from the inventories of the members, and that nothing was
	// planned since.
	Rebuilt bool
	// FirstPlan says that the ledger was empty at the start, and that nothing was planned since: runs that Git has may have been recorded in
	// a ledger that was lost.
	FirstPlan bool
	// Memo caches results between calls.
	Memo *Memo
}

// A planner has the state of one call of Resolve.
type planner struct {
	Input
	memo    *Memo
	results results // of this call
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

// A runPlanner plans the staged update runs of a placement.
type runPlanner struct{ *placementPlanner }

func newPlanner(in Input) *planner {
	pl := &planner{Input: in, memo: in.Memo, paused: in.Memo.paused}
	pl.wake = api.Earliest(
		pl.memo.members.Update(fleet.Input{Declared: in.InForce.Clusters, Ledger: in.Ledger, Observed: in.Observed, Now: in.Now}),
		pl.memo.suspensions.Update(in.Ledger, in.Now))
	pl.memo.setInForce(in.InForce)
	pl.unchanged = pl.memo.common() == pl.memo.planned
	return pl
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

func (pl *planner) stateOf(commit string) commitState {
	switch {
	case commit == pl.InForce.Commit.Hash || pl.Past[commit] != nil:
		return commitLoaded
	case pl.Lost[commit] != nil:
		return commitLost
	}
	return commitLoading
}

// isPaused reports whether an assignment would change on the cluster and may not.
func (pl *planner) isPaused(c *OnCluster) bool {
	return pl.paused[c.Binding.Cluster] != "" && !c.Binding.Removing && (!c.UpToDate() || c.Binding.Unscheduled)
}

// settled reports whether every cluster has its newest content, and all of it is available. What a paused cluster would
// get is not known to the rollout, and is not what it has.
func (pl *planner) settled(p *Placement) bool {
	return p.Rollout.Settled && !slices.ContainsFunc(p.Clusters, pl.isPaused)
}

// recordRemoval records which commit removes the placement from a cluster.
func (pl *planner) recordRemoval(b *placement.Binding) {
	b.Change(func(in *placement.Circumstances) { in.RemovedBy = pl.InForce.Commit.Hash })
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
