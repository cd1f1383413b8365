package plan

import (
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// advanceRollout advances the rollout and records the result in the bindings.
func (pl *placementPlanner) advanceRollout(p *Placement) {
	in := rolloutInput(pl, p)
	deferrals, deferred := pl.deferralsOf(p, pl.current.prepared.fingerprintOf, p.Record.Index), false
	in.Targets = pl.planner.memo.rolling[:0]
	for _, c := range p.Clusters {
		in.Targets = append(in.Targets, pl.rolloutTarget(p, c))
		deferral := deferrals(c)
		in.Targets[len(in.Targets)-1].Deferral, deferred = deferral, deferred || deferral.Why != ""
	}
	runs := runPlanner{pl}
	if in.Run = runs.stagedRun(p); in.Run != nil {
		runs.assignRun(p, in.Run, in.Targets)
	}
	p.Rollout = rollout.Next(in)
	if (p.Rollout.Stopped != "" || deferred) && pl.assignProven(p, in.Targets) {
		p.Rollout = rollout.Next(in)
	}
	if !slices.Equal(p.Record.Stops, p.Rollout.Stops) {
		p.Record.Stops = p.Rollout.Stops
	}
	for i, a := range p.Rollout.Assign {
		c := p.near(a.Cluster, i)
		b, latest := c.Binding, a.Revision == c.Latest()
		if a.Changed {
			b.Assigned, b.AssignedAt, b.AllowDelete, b.SameAs = a.Revision, pl.planner.Now, pl.mayDelete(p, latest), 0
		}
		if a.Changed && latest {
			b.Index = int32(p.Record.Index)
		} else if a.Changed && in.Run != nil {
			b.Index = int32(in.Run.Index)
		}
		c.recordAssignment(a, p.Record.Index)
	}
	for _, cluster := range p.Rollout.Remove {
		if pl.planner.paused[cluster] == "" {
			b := p.On(cluster).Binding
			if !b.Removing {
				pl.planner.recordRemoval(b)
			}
			// A commit that allowed one content to replace another does not allow the removal.
			b.Removing, b.AllowDelete = true, b.Removing && b.AllowDelete || pl.current.deleteAllowed
		}
	}
	for _, w := range p.Rollout.Waiting {
		p.On(w.Cluster).Waits = w.Message
	}
	recordDeferrals(pl, p, in.Targets)
	pl.planner.memo.rolling = in.Targets
	runs.recordRun(p, in.Run)
	for _, f := range p.Rollout.Failed {
		p.On(f.Cluster).setFailure(f)
	}
	for _, c := range p.Clusters {
		if c.Unbuilt() && (in.Run == nil || in.Run.Content.Hash == pl.current.prepared.fingerprintOf()) {
			c.change(func(in *Circumstances) { in.Failure = c.renderError() })
		}
		switch {
		case c.Waits != "" && c.Unusual().Refusal != "":
			c.Waits = c.Unusual().Refusal
		case c.Waits != "" && pl.planner.missingPermissions(c) != "":
			c.Waits = pl.planner.missingPermissions(c)
		case c.Waits != "":
			c.Waits += pl.planner.notRepairedReason(c)
		}
		if pl.planner.isPaused(c) {
			c.Waits = "commit " + pl.planner.paused[c.Binding.Cluster] + ", which the content of the cluster comes from, is still being loaded"
		}
	}
	if p.RunPending != "" { // on something that may have changed without this placement
		p.Rollout.Wake = api.Earliest(p.Rollout.Wake, pl.planner.Now.Add(pendingRunDelay))
	}
	pl.current.wake = p.Rollout.Wake
}

// pendingRunDelay is how long a run that cannot be initialised waits before that is tried again.
const pendingRunDelay = 5 * time.Second

// rolloutInput returns the input of the rollout without bindings.
func rolloutInput(pl *placementPlanner, p *Placement) rollout.Input {
	in := rollout.Input{Wanted: p.Schedule.Wanted, Strategy: p.Spec.Spec.Strategy, Now: pl.planner.Now, Resumed: p.Record.Resumed,
		Stops: pl.stops(p), MaxUnreachable: pl.planner.MaxUnreachable, AvailableTimeout: pl.planner.AvailableTimeout, RepairAfter: pl.planner.RepairAfter,
		StopOnFailure: p.Spec.Annotations[api.OnFailureAnnotation] != api.OnFailureContinue}
	if timeout, err := time.ParseDuration(p.Spec.Annotations[api.AvailableTimeoutAnnotation]); err == nil {
		in.AvailableTimeout = timeout // the loader has refused invalid durations
	}
	return in
}

// missingPermissions returns the missing permissions of a cluster that cannot be used because of them; empty if it can
// be used, or cannot for another reason.
func (pl *planner) missingPermissions(c *OnCluster) string {
	if seen := pl.Ledger.Cluster(c.Binding.Cluster); seen != nil && !seen.Healthy {
		return seen.Denied()
	}
	return ""
}

// stops returns the recorded failed updates, each with the content its cluster would get now, even if the cluster is no
// longer selected or declared.
func (pl *placementPlanner) stops(p *Placement) []rollout.EarlierStop {
	var out []rollout.EarlierStop
	for _, s := range p.Record.Stops {
		cluster, declared := pl.planner.memo.members.Cluster(s.Cluster)
		if !declared {
			cluster = work.WithLabels(placement.Cluster{Name: s.Cluster}, s.Failed)
		}
		content, _ := pl.current.prepared.renderer.For(cluster) // content with errors has a hash as well
		out = append(out, rollout.EarlierStop{Stop: s, Latest: content.Hash})
	}
	return out
}

// notRepairedReason returns the reason why changes by others on a waiting cluster are not reverted; empty if they are.
func (pl *planner) notRepairedReason(c *OnCluster) string {
	if c.Entry == nil || !c.Entry.Binding.HasRevision() || c.PreviousContent != nil || c.notRenderable || c.Unusual().loading != "" || c.UpToDate() {
		return ""
	}
	commit := c.Entry.Binding.Assigned.Commit
	why := "renders to other content now"
	if err := pl.Lost[commit]; err != nil && pl.Past[commit] == nil {
		why = "cannot be loaded, which is retried (" + err.Error() + ")"
	}
	return "; until then it is left as it is, and drift there is not reverted: commit " + commit + ", which its content comes from, " + why
}

func (pl *placementPlanner) rolloutTarget(p *Placement, c *OnCluster) rollout.Target {
	seen := pl.planner.Ledger.Cluster(c.Binding.Cluster)
	b := rollout.Target{
		Binding: *c.Binding, Latest: c.Latest(),
		Unreachable: seen == nil || !seen.Healthy || c.Unusual().Refusal != "", Suspended: c.Unusual().Suspended,
		Seen: pl.rolloutStatus(p, c), BlockedSince: c.Unusual().suspendedSince,
	}
	if seen != nil && !seen.Healthy {
		b.BlockedSince = api.Earliest(b.BlockedSince, seen.Since)
	}
	switch {
	case c.Unusual().Refusal != "":
		b.UnusableWhy = "another fleet has claimed it"
		if pl.planner.Ledger.SameAs(c.Binding.Cluster) != "" {
			b.UnusableWhy = "another member has claimed it"
		}
	case b.Unreachable && seen != nil && len(seen.Forbidden) > 0:
		b.UnusableWhy = "permissions are missing on it"
	}
	if pl.planner.isPaused(c) || c.Unbuilt() {
		b.Latest = placement.Revision{}
	}
	return b
}

// rolloutStatus returns the member's report about the assigned revision in the form that the rollout uses.
func (pl *placementPlanner) rolloutStatus(p *Placement, c *OnCluster) rollout.Seen {
	if c.Err != nil && c.UpToDate() || c.notRenderable && c.Binding.Assigned == c.Entry.Binding.Assigned {
		return rollout.Seen{Hash: c.Binding.Assigned.Hash, Health: rollout.Failed, Since: c.Binding.AssignedAt, Failure: c.renderError()}
	}
	all := c.LastKnown()
	w := all.WithoutSuspended()
	if w == nil {
		return rollout.Seen{}
	}
	out := rollout.Seen{Hash: w.Revision.Hash, Since: c.Entry.AvailableSince(), Partial: w != all}
	failed, reportsOnly := w.Failed(), p.Spec.Spec.Strategy.ReportsDiff()
	switch {
	case !w.Done, w.Compared && !reportsOnly, w != all && !c.isSuspended(all):
		out.Health = rollout.Unknown
	case reportsOnly && w.Applied() && len(c.Unusual().Deviation.Yields) == 0:
		out.Health = rollout.DiffReported
	case reportsOnly:
		out.Health, out.Failure = rollout.DiffFailed, c.failure(w)
	case failed != nil && !failed.Applied.OK || c.UpToDate() && len(c.Content.Refused) > 0 || c.Unusual().Deviation.LeavesObjects():
		out.Health, out.Failure = rollout.Failed, c.failure(w)
	// An object that passes to this placement with another one's rollout exists, with the other one's content. It must
	// not delay this rollout, since two rollouts could wait for each other forever.
	case !w.Available():
		out.Health, out.Failure, out.Since = rollout.Unavailable, c.failure(w), pl.planner.unavailableSince(c)
	case w.Untrackable > 0:
		out.Health = rollout.Untracked
	default:
		out.Health = rollout.Available
	}
	if !c.Seen().Done { // what was known before is no proof of availability, while a failure remains one
		return rollout.Seen{Hash: out.Hash, Health: rollout.Unknown, Since: c.Entry.SeenAt(), Failure: out.Failure}
	}
	if out.Since.IsZero() {
		out.Since = c.Entry.SeenAt()
	}
	if out.Health == rollout.Available || out.Health == rollout.Untracked {
		out.UpSince = pl.planner.upSince(c)
	}
	if out.Health == rollout.Unavailable || out.Health == rollout.Failed {
		out.Writing, out.DownSince = c.Entry.Unusual().Writing, pl.planner.downSince(c)
	}
	return out
}

// reachableSince returns since when a cluster is reachable. reported is false if its member has not reported since then, or
// since gitfleet was started.
func reachableSince(l *ledger.Ledger, c *OnCluster) (since time.Time, reported bool) {
	seen := l.Cluster(c.Binding.Cluster)
	if !c.Entry.Reported() || seen == nil || c.Entry.SeenAt().Before(seen.Since) {
		return time.Time{}, false
	}
	return seen.Since, true
}

// upSince returns the time since which a cluster has been continuously available. Interruptions while gitfleet was not running are
// not known. The time starts again when the cluster becomes reachable, and is zero until the member has reported after that.
func (pl *planner) upSince(c *OnCluster) time.Time {
	reachable, reported := reachableSince(pl.Ledger, c)
	if !reported || c.Entry.AvailableSince().IsZero() {
		return time.Time{}
	}
	return slices.MaxFunc([]time.Time{c.Entry.AvailableSince(), c.Binding.AssignedAt, reachable}, time.Time.Compare)
}

// downSince returns since when a cluster is known to be unavailable without an interruption. The time begins again when
// gitfleet is started, when the cluster becomes reachable, when a suspension ends, and the like: what is reported right
// after that may be a consequence of it. It is zero if the member has not reported since.
func (pl *planner) downSince(c *OnCluster) time.Time {
	reachable, reported := reachableSince(pl.Ledger, c)
	if !reported {
		return time.Time{}
	}
	e := c.Entry
	return slices.MaxFunc([]time.Time{c.Binding.AssignedAt, e.Unusual().UnavailableSince, e.ReportedSince(), e.Unusual().DisturbedAt, reachable}, time.Time.Compare)
}

// unavailableSince returns the beginning of the availability timeout. It begins again when the cluster becomes
// reachable, since the content may have been available in between. It never ends before the member has reported since
// the process started.
func (pl *planner) unavailableSince(c *OnCluster) time.Time {
	if !c.Entry.Reported() {
		return pl.Now
	}
	since := c.Entry.Unusual().UnavailableSince
	if seen := pl.Ledger.Cluster(c.Binding.Cluster); seen != nil && seen.Since.After(since) {
		return seen.Since
	}
	return since
}
