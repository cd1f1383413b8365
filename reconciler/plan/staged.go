package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// stagedRun updates the records of the staged update runs of a placement, and returns the one that decides which
// content the clusters get: the last that was started. It is nil if there is none.
func (pl runPlanner) stagedRun(p *Placement) *rollout.StagedRun {
	declared := pl.planner.memo.inForce.runs[p.Key]
	if p.Spec.Spec.Strategy.Type != api.External || len(declared)+len(p.Record.Runs) == 0 {
		return nil
	}
	declared = pl.named(p, declared)
	p.Runs = declared
	pl.recordRuns(p, declared)
	i := lastStarted(p.Record.Runs)
	if i < 0 {
		return nil
	}
	run := &rollout.StagedRun{Run: p.Record.Runs[i]}
	before := run.Run
	run.Halted = "its manifest was deleted, so it is stopped"
	if d := declaredRun(declared, run.Name); d != nil {
		run.Halted, run.Approved = "", d.Approved
		if run.Unmatched == "" { // the record of an older version
			run.Unmatched, run.OnFailure = cmp.Or(d.Unmatched, api.UnmatchedFail), d.OnFailure
		}
		pl.checkEdits(p, d, &before)
		switch d.State {
		case api.RunStop:
			run.Halted = "it is stopped (spec.state: Stop)"
		case api.RunInitialize:
			run.Halted = before.Halted // refused, so that the state before stays
		}
	}
	if r := run.Rejected; r != nil {
		run.Halted = "it was rejected by " + r.Text()
	}
	pl.joinRun(p, &run.Run)
	for _, a := range run.Approvals {
		run.Approved = append(slices.Clone(run.Approved), a.Request)
	}
	if !run.Active() {
		run.Halted = ""
	}
	p.Record.Runs[i] = run.Run
	return run
}

// checkEdits warns of edits of a run that has started which KubeFleet refuses, and which have no effect.
func (pl runPlanner) checkEdits(p *Placement, d *hub.StagedRun, r *placement.Run) {
	if d.State == api.RunInitialize && r.Active() {
		from := api.RunRun
		if r.Halted != "" {
			from = api.RunStop
		}
		p.warnRun(d, fmt.Sprintf("invalid state transition: cannot transition from %s to Initialize; write Run or Stop", from))
	}
	if !d.Automatic && r.Strategy != "" && d.Strategy != r.Strategy {
		p.warnRun(d, "stagedRolloutStrategyName is immutable: it keeps the stages of "+r.Strategy+"; commit a run with another name")
	}
}

// named gives the run that a placement asks for with an annotation its name. It is that of the last such run as long as that has
// the content in force, or as newer content is queued behind it; otherwise it is a new one.
func (pl runPlanner) named(p *Placement, declared []*hub.StagedRun) []*hub.StagedRun {
	i := slices.IndexFunc(declared, func(d *hub.StagedRun) bool { return d.Name == "" })
	if i < 0 {
		return declared
	}
	queues := p.Spec.Annotations[api.NewContentAnnotation] == api.NewContentQueues
	if queues && slices.ContainsFunc(p.Record.Runs, func(r placement.Run) bool { return r.Active() && !r.Automatic }) {
		return slices.Delete(slices.Clone(declared), i, i+1)
	}
	run := *declared[i]
	run.Name = pl.automaticName(p, queues)
	out := slices.Clone(declared)
	out[i] = &run
	return out
}

// automaticName returns the name of the run for the content in force: that of the last such run if it is for this content, or if this
// content has to wait for it, and that of one that was rolled back for this content, which does not run again; otherwise a new one.
// Once Git has the content again to which clusters have gone back, the run that brought it is in force, and no other is needed.
func (pl runPlanner) automaticName(p *Placement, queues bool) string {
	if name := finishedWith(p.Record.Runs, pl.current.prepared.fingerprintOf()); name != "" {
		return name
	}
	last := true
	for _, r := range slices.Backward(p.Record.Runs) {
		if !r.Automatic {
			continue
		}
		same := r.Content.Hash == pl.current.prepared.fingerprintOf()
		if same && (last || r.RolledBack != "") || last && queues && r.Active() {
			return r.Name
		}
		last = false
	}
	return pl.newRunName(p)
}

// finishedWith returns the name of the run in force if it was created automatically for this content and has finished; otherwise "".
func finishedWith(runs []placement.Run, fingerprint string) string {
	i := lastStarted(runs)
	if i < 0 || !runs[i].Automatic || runs[i].Finished.IsZero() || runs[i].Content.Hash != fingerprint {
		return ""
	}
	return runs[i].Name
}

// newRunName returns the name of a run of the placement for the commit in force.
func (pl runPlanner) newRunName(p *Placement) string {
	const longest, digits = 63, 8
	commit := pl.planner.InForce.Commit.Hash
	return p.Key.Name[:min(len(p.Key.Name), longest-digits-1)] + "-" + commit[:min(len(commit), digits)]
}

// recordRuns records the runs that have appeared, starts those that are asked to run, and forgets those that are
// neither declared nor in force, except the last finished one and the newest automatic ones.
func (pl runPlanner) recordRuns(p *Placement, declared []*hub.StagedRun) {
	var runs []placement.Run
	last, finished, automatic := lastStarted(p.Record.Runs), lastFinished(p.Record.Runs), 0
	for i, r := range slices.Backward(p.Record.Runs) {
		if r.Automatic {
			automatic++
		}
		if i == last || i == finished || r.Automatic && automatic <= pastRuns(p) || declaredRun(declared, r.Name) != nil {
			runs = append(runs, r.Clone())
		}
	}
	slices.Reverse(runs)
	p.Record.Runs = runs
	newest, loading := pl.newestRun(p, declared)
	for _, d := range declared {
		i := slices.IndexFunc(p.Record.Runs, func(r placement.Run) bool { return r.Name == d.Name })
		if i < 0 {
			if p.RunPending = cmp.Or(pl.notReady(p), loading); p.RunPending != "" {
				p.warnRun(d, "is not initialised yet: "+p.RunPending)
				continue
			}
			i = len(p.Record.Runs)
			p.Record.Runs = append(p.Record.Runs, pl.newRun(p, d, newest))
		}
		r := &p.Record.Runs[i]
		if r.Automatic && (r.Failed != "" || supersededByDeletedRun(p.Record.Runs, declared, r)) && pl.notReady(p) == "" { // nobody can give it another name
			*r = pl.newRun(p, d, nil)
		}
		switch {
		case r.Failed != "":
			p.warnRun(d, "UpdateRunInitializedFailed: "+r.Failed+"; correct that, and commit a run with another name")
		case r.RolledBack != "" && r.Automatic:
			p.warnRun(d, "was rolled back, and its content does not come back by itself: "+r.RolledBack+"; commit other content, or run it again with gitfleet resume "+p.Key.String()+" --failed-content")
		case r.Started.IsZero() && (d.State == api.RunRun || d == newest):
			pl.startRun(p, r)
		}
	}
	if len(p.Record.Runs) > 0 {
		p.Record.LostRuns = nil
	}
}

// pastRuns is how many automatic runs are remembered.
func pastRuns(p *Placement) int {
	if limit := p.Spec.Spec.RevisionHistoryLimit; limit != nil {
		return min(int(*limit), maxRevisions)
	}
	return maxRevisions
}

// supersededByDeletedRun reports whether a run was superseded by one that is under way and whose manifest was deleted.
func supersededByDeletedRun(runs []placement.Run, declared []*hub.StagedRun, r *placement.Run) bool {
	return r.SupersededBy != "" && r.RolledBack == "" && declaredRun(declared, r.SupersededBy) == nil &&
		slices.ContainsFunc(runs, func(by placement.Run) bool { return by.Name == r.SupersededBy && by.Active() })
}

// startRun starts a run, which supersedes the one that is active.
func (pl runPlanner) startRun(p *Placement, r *placement.Run) {
	for i := range p.Record.Runs {
		if other := &p.Record.Runs[i]; other.Active() {
			other.SupersededBy, other.SupersededAt = r.Name, pl.planner.Now
		}
	}
	r.Started = pl.planner.Now
}

// lastStarted is the index of the run that started last and is not superseded; -1 if none has.
func lastStarted(runs []placement.Run) int {
	last := -1
	for i := range runs {
		r := &runs[i]
		if !r.Started.IsZero() && r.SupersededBy == "" && (last < 0 || !r.Started.Before(runs[last].Started)) {
			last = i
		}
	}
	return last
}

// lastFinished is the index of the run that started last of those that have finished; -1 if none has.
func lastFinished(runs []placement.Run) int {
	last := -1
	for i := range runs {
		if r := &runs[i]; !r.Finished.IsZero() && (last < 0 || !r.Started.Before(runs[last].Started)) {
			last = i
		}
	}
	return last
}

func declaredRun(declared []*hub.StagedRun, name string) *hub.StagedRun {
	i := slices.IndexFunc(declared, func(d *hub.StagedRun) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return declared[i]
}

func (p *Placement) warnRun(d *hub.StagedRun, message string) {
	p.Warnings = append(p.Warnings, problem.Problem{Origin: d.Origin, Severity: problem.Warning, Message: "run " + d.Name + " " + message})
}

// joinRun adds the clusters that were selected since the run was initialised to the stage that matches them. A cluster
// keeps its stage also if its labels change.
func (pl runPlanner) joinRun(p *Placement, r *placement.Run) {
	for _, c := range p.Clusters {
		if !selected(c) || r.Has(c.Binding.Cluster) {
			continue
		}
		cluster, _ := pl.planner.memo.members.Cluster(c.Binding.Cluster)
		if in := matchingStages(r, cluster); len(in) > 0 {
			r.Join(&r.Stages[in[0]], cluster.Name, pl.planner.Now)
		} else if r.Unmatched == api.UnmatchedLast {
			addUnmatched(r, cluster.Name)
		}
	}
}

// assignRun makes the content of a run the latest of the targets, which neither a freeze nor a window defers if it was available on
// every cluster before. If its commit has to be loaded, no cluster moves.
func (pl runPlanner) assignRun(p *Placement, run *rollout.StagedRun, targets []rollout.Target) {
	if run.Content.Hash == pl.current.prepared.fingerprintOf() {
		return
	}
	content := pl.contentOf(p, run.Content)
	if run.Unknown = pl.unknownContent(p, run, content); run.Unknown != "" {
		return
	}
	deferrals := pl.deferralsOf(p, func() string { return run.Content.Hash }, run.Index)
	for i := range targets {
		b := &targets[i]
		if b.Unscheduled || b.Removing {
			continue
		}
		c := p.On(b.Cluster)
		b.Latest, b.Deferral = placement.Revision{}, deferrals(c)
		cluster, _ := pl.planner.memo.members.Cluster(b.Cluster)
		rendered, err := content.renderer.For(cluster)
		if err != nil || rendered.Hash == "" {
			c.Waits = "run " + run.Name + ": its content cannot be rendered for the cluster"
			if err != nil {
				c.Waits += ": " + err.Error()
			}
			continue
		}
		b.Latest = placement.Revision{Commit: run.Content.Commit, Hash: rendered.Hash, Labels: content.renderer.Labels(cluster)}
		if b.Assigned.Hash == rendered.Hash {
			b.Latest = b.Assigned
		}
		c.change(func(s *Circumstances) { s.provenContent = rendered })
		pl.markInUse(content)
	}
}

// unknownContent returns why the content of a run is not known for all of its clusters; empty if it is.
func (pl runPlanner) unknownContent(p *Placement, run *rollout.StagedRun, content *prepared) string {
	commit := run.Content.Commit
	if err := pl.planner.Lost[commit]; content == nil && err != nil {
		return "commit " + commit + ", whose content it brings, cannot be loaded, which is retried: " + err.Error()
	}
	if content == nil || slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool {
		return selected(c) && run.Has(c.Binding.Cluster) && pl.planner.isPaused(c)
	}) {
		return "a commit that its clusters have or get is still being loaded"
	}
	return ""
}

// signedApprovals returns the approvals of a run with those that files have just given, by who signed the commits that last changed
// these files. Nobody has vouched for a file that a kustomization built, or without a verified signature.
func (pl runPlanner) signedApprovals(d *hub.StagedRun, before, now *placement.Run) []placement.Approval {
	all := now.Approvals
	if d == nil {
		return all
	}
	add := func(stage string, first bool, was, is time.Time) {
		name := api.ApprovalName(now.Name, stage, first)
		if !was.IsZero() || is.IsZero() || slices.ContainsFunc(all, func(a placement.Approval) bool { return a.Request == name }) {
			return
		}
		i := slices.IndexFunc(d.Requests, func(m *hub.StagedManifest) bool { return m.ID.Name == name })
		if i < 0 || d.Requests[i].Origin.Kustomization != "" {
			return
		}
		if c := pl.planner.InForce.Signed[d.Requests[i].Origin.Path]; c.Signer != "" {
			all = append(slices.Clone(all), placement.Approval{Request: name, By: c.Signer, Commit: c.Hash, At: is})
		}
	}
	for i := range min(len(before.Stages), len(now.Stages)) {
		was, is := &before.Stages[i], &now.Stages[i]
		add(is.Name, true, was.ApprovedBefore, is.ApprovedBefore)
		add(is.Name, false, was.ApprovedAfter, is.ApprovedAfter)
	}
	return all
}

// recordRun records the progress of a run, and says of clusters that have its content why they do not get newer one.
func (pl runPlanner) recordRun(p *Placement, run *rollout.StagedRun) {
	if run == nil {
		return
	}
	i := slices.IndexFunc(p.Record.Runs, func(r placement.Run) bool { return r.Name == run.Name })
	if p.Record.Runs[i].Active() && !p.Rollout.Run.Active() {
		p.Rollout.Wake = pl.planner.Now.Add(time.Second) // newer content may wait for the end of the run
	}
	before := p.Record.Runs[i]
	p.Record.Runs[i] = *p.Rollout.Run
	p.Record.Runs[i].Approvals = pl.signedApprovals(declaredRun(p.Runs, run.Name), &before, p.Rollout.Run)
	switch r := &p.Record.Runs[i]; {
	case !r.Active() || r.Halted == "":
		r.Halted, r.HaltedSince = "", time.Time{}
	case r.HaltedSince.IsZero():
		r.HaltedSince = pl.planner.Now
	}
	p.RunUnknown = run.Unknown
	pl.rollBack(p, i)
	older := run.Content.Hash != pl.current.prepared.fingerprintOf()
	p.Rollout.Settled = p.Rollout.Settled && !older
	why := "whose content waits for another run"
	if p.FailedContent = failedContent(&p.Record, pl.current.prepared.fingerprintOf()); p.FailedContent != nil {
		why = "whose content failed and was rolled back"
	}
	for _, c := range p.Clusters {
		if older && selected(c) && c.Waits == "" && c.Binding.HasRevision() && c.Binding.Assigned.Hash != c.Latest().Hash {
			c.Waits = "the strategy is External: the content of run " + run.Name + " is older than the commit in force, " + why
		}
	}
}

// rollBack ends a run in which an update or a gate has failed, if its strategy asks for that: the clusters go back to the content of the last
// run that has finished.
func (pl runPlanner) rollBack(p *Placement, i int) {
	r, progress := &p.Record.Runs[i], p.Rollout.Progress
	if r.OnFailure != api.OnFailureRollBack || !r.Active() || r.Halted != "" || progress == nil || len(progress.Failed)+len(progress.FailedGates) == 0 {
		return
	}
	to := lastFinished(p.Record.Runs)
	if to < 0 || p.Record.Runs[to].Content.Hash == r.Content.Hash {
		return // there is nothing to go back to
	}
	stage := r.Stages[r.Turn()].Name
	if len(progress.Failed) == 0 {
		r.RolledBack = fmt.Sprintf("stage %s has not passed %s", stage, strings.Join(progress.FailedGates, "; "))
	} else {
		r.RolledBack = fmt.Sprintf("the update failed on %s in stage %s", strings.Join(progress.Failed, ", "), stage)
		if f := slices.IndexFunc(p.Rollout.Failed, func(f rollout.Failure) bool { return f.Cluster == progress.Failed[0] }); f >= 0 {
			r.RolledBack += ": " + p.Rollout.Failed[f].Reason
		}
	}
	r.SupersededBy, r.SupersededAt = p.Record.Runs[to].Name, pl.planner.Now
	p.Rollout.Wake = pl.planner.Now.Add(time.Second)
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
