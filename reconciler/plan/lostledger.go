package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// After the ledger was lost, a placement may be on clusters that have not answered since. PickN selects no others in
// their place, since it would have to remove them as soon as those clusters answer. This ends for a placement once all
// declared clusters have answered, once it is found on as many clusters as it wants, or once a user resumes it.

// unansweredClusters counts the declared clusters that have not answered since the ledger was lost.
func (pl *planner) unansweredClusters() int {
	n := 0
	for _, c := range pl.InForce.Clusters {
		if seen := pl.Ledger.Cluster(c.Name); seen == nil || seen.Joined.IsZero() {
			n++
		}
	}
	return n
}

// reducePolicyAfterLoss returns the policy of a placement. While clusters that have not answered may hold the
// placement, it requests fewer clusters, sets p.Unanswered and adds a warning. After that it clears Rebuilt in the
// record. Only PickN is reduced: the other types do not choose replacements.
func (pl *placementPlanner) reducePolicyAfterLoss(p *Placement, bound []placement.Binding) *api.PlacementPolicy {
	policy := p.Spec.Spec.Policy
	if !p.Record.Rebuilt || policy == nil || policy.PlacementType != api.PickN || policy.NumberOfClusters == nil {
		return policy
	}
	wanted, unanswered, held := int(*policy.NumberOfClusters), pl.planner.unansweredClusters(), 0
	current := placement.PolicyHash(policy)
	for _, b := range bound {
		// Under another policy, a cluster that another fleet has claimed is not selected again.
		if !b.Unscheduled && (b.Policy == current || pl.planner.Ledger.Refusal(b.Cluster) == "") {
			held++
		}
	}
	if unanswered == 0 || held >= wanted {
		p.Record.Rebuilt = false
		return policy
	}
	room := int32(max(held, wanted-unanswered))
	p.Unanswered = unanswered
	p.warn("spec.policy", fmt.Sprintf("%d of %d clusters are not selected yet: the ledger was lost, and %s not answered since and may hold the placement; "+
		"selection continues when they answer or are removed from the repository, or with gitfleet resume %s", wanted-int(room), wanted, clustersHave(unanswered), p.Key))
	fewer := *policy
	fewer.NumberOfClusters = &room
	return &fewer
}

func clustersHave(clusters int) string {
	if clusters == 1 {
		return "1 cluster has"
	}
	return fmt.Sprintf("%d clusters have", clusters)
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
