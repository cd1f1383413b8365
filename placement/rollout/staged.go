package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// stages plans one step of a staged run. A stage begins when the one before it is finished: when all its clusters were
// available with the content of the run, and its tasks are done.
func (in *Input) stages() Plan {
	run := in.Run.Clone()
	p := Plan{Settled: true, Stops: in.stops(), Run: &run, Progress: &RunProgress{}}
	for i := range in.Targets {
		if b := &in.Targets[i]; b.keepsPlace(in) {
			p.wake(b.BlockedSince.Add(in.RepairAfter))
		}
	}
	if in.Run.Unknown != "" {
		in.keepRun(&p)
		return p
	}
	w := &stageWalk{in: in, plan: &p, run: &run, may: map[string]bool{}, why: map[string]string{}}
	if !run.Finished.IsZero() {
		p.Budget = in.budget()
		left := in.allow(p.Budget, false)
		w.left = &left
	}
	open := false
	for i := range run.Stages {
		s := &run.Stages[i]
		switch {
		case open:
			w.wait(s, "waits for stage "+w.current)
		case !s.Finished.IsZero():
			w.updateAll(s)
		default:
			open = !w.step(s)
		}
	}
	deleting := w.mayDelete(open)
	for i := range in.Targets {
		if b := &in.Targets[i]; !b.Removing {
			w.decide(b, deleting)
		}
	}
	w.recordProgress()
	if !open && run.Active() {
		w.finish()
	}
	in.writeMessages(&p)
	return p
}

// mayDelete reports whether the content may be removed from the clusters that are not selected any more: after the last stage, and not while no
// cluster that the run updates has its content. If no cluster is selected, nothing is waited for: the tasks of a stage whose clusters have left may
// never be done.
func (w *stageWalk) mayDelete(open bool) bool {
	anySelected, awaited, updated := false, false, false
	for i := range w.in.Targets {
		b := &w.in.Targets[i]
		if !b.selected() {
			continue
		}
		anySelected = true
		if w.run.Has(b.Cluster) || !w.run.IgnoresUnmatched() {
			awaited, updated = true, updated || b.has()
		}
	}
	return !anySelected || !open && (updated || !awaited)
}

// keepRun keeps everything as it is, since the content of the run is not known.
func (in *Input) keepRun(p *Plan) {
	p.Settled, p.Progress = false, nil
	for i := range in.Targets {
		b := &in.Targets[i]
		if b.Removing {
			continue
		}
		if b.selected() && !slices.ContainsFunc(p.Run.Stages, func(s placement.RunStage) bool { return !s.Updated.IsZero() && slices.Contains(s.Clusters, b.Cluster) }) {
			p.addWaiting(b, waitsExternal, "run "+p.Run.Name+": "+in.Run.Unknown)
		}
		in.keepAssigned(p, b)
	}
	in.writeMessages(p)
}

// recordProgress records which clusters have the content of the run now.
func (w *stageWalk) recordProgress() {
	out := w.plan.Progress
	for _, a := range w.plan.Assign {
		switch b := w.in.target(a.Cluster); {
		case !b.selected() || a.Hash != b.Latest.Hash || b.Latest == placement.Revision{}:
		case a.WasAvailable:
			out.Updated = append(out.Updated, a.Cluster)
		default:
			out.Updating = append(out.Updating, a.Cluster)
		}
	}
}

// finish ends the run once nothing is left to be removed.
func (w *stageWalk) finish() {
	d, left := &w.run.Deletion, false
	d.Name = api.DeleteStage
	if d.Started.IsZero() {
		d.Started = w.in.Now
	}
	for i := range w.in.Targets {
		if b := &w.in.Targets[i]; b.Unscheduled {
			left = true
			if !slices.Contains(d.Clusters, b.Cluster) {
				d.Clusters = append(d.Clusters, b.Cluster)
			}
		}
	}
	if !left {
		w.run.Finished, d.Updated, d.Finished = w.in.Now, w.in.Now, w.in.Now
	}
}

// A stageWalk goes through the stages of a run.
type stageWalk struct {
	in   *Input
	plan *Plan
	run  *placement.Run
	// current is the stage that is not finished.
	current string
	// left is what is left of the budget for removals after the run has ended; nil before that.
	left *allowance
	// lost counts the unreachable clusters, in the stages so far, that the run does not wait for.
	lost int
	// failed are on how many clusters of these stages the update has failed.
	failed int
	// may are the clusters that may be updated now, and why is why others may not.
	may map[string]bool
	why map[string]string
}

// members are the targets of a stage that are still selected, in order.
func (w *stageWalk) members(s *placement.RunStage) []*Target {
	var out []*Target
	for _, name := range s.Clusters {
		if b := w.in.target(name); b != nil && b.selected() {
			out = append(out, b)
		}
	}
	return out
}

func (w *stageWalk) wait(s *placement.RunStage, why string) {
	for _, b := range w.members(s) {
		w.why[b.Cluster] = "run " + w.run.Name + ": stage " + s.Name + " " + why
	}
}

// updateAll lets all clusters of a finished stage have the content, such as those that joined since. Those that the stage has skipped
// as unreachable stay recorded until they have it.
func (w *stageWalk) updateAll(s *placement.RunStage) {
	s.Failed = slices.DeleteFunc(s.Failed, func(name string) bool {
		b := w.in.target(name)
		return b == nil || !b.selected() || b.has() && w.in.updated(b)
	})
	w.failed += len(s.Failed)
	skipped := s.Unreachable
	s.Unreachable = nil
	for _, b := range w.members(s) {
		w.may[b.Cluster] = true
		lost := w.isLost(b)
		if slices.Contains(s.Failed, b.Cluster) || !lost && (!slices.Contains(skipped, b.Cluster) || b.has() && w.in.updated(b)) {
			continue
		}
		s.Unreachable = append(s.Unreachable, b.Cluster)
		if lost {
			w.lost++
			w.plan.Progress.NotAwaited = append(w.plan.Progress.NotAwaited, b.Cluster)
		}
	}
}

// isLost reports whether a cluster is unreachable and does not have the content of the run. A cluster that was lost less than RepairAfter ago,
// during its update, is not.
func (w *stageWalk) isLost(b *Target) bool {
	return b.Unreachable && !(b.has() && w.in.updated(b)) && !b.keepsPlace(w.in)
}

// limits returns how many unreachable clusters of a stage are not waited for, and on how many clusters the update may fail.
func (w *stageWalk) limits(members []*Target) (maxLost, maxFailed int) {
	all := 0
	for i := range w.run.Stages {
		all += len(w.members(&w.run.Stages[i]))
	}
	return w.run.MaxUnreachable(len(members), all, w.lost), w.run.MaxFailed(len(members), all, w.failed)
}

// step decides on the clusters of the first stage that is not finished, and reports whether it is finished now.
func (w *stageWalk) step(s *placement.RunStage) bool {
	w.current = s.Name
	members := w.members(s)
	if len(s.Clusters) == 0 { // skipped together with its tasks
		s.Updated, s.Finished = w.in.Now, w.in.Now
		return true
	}
	if halted := w.in.Run.Halted; halted != "" { // what has begun is followed to its end, and no task is looked at
		w.update(s, members)
		w.current += ": " + halted
		return false
	}
	if !w.approve(s, true, &s.ApprovedBefore) {
		w.wait(s, "waits for the approval "+api.ApprovalName(w.run.Name, s.Name, true))
		return false
	}
	if s.Started.IsZero() {
		s.Started = w.in.Now
	}
	if !w.update(s, members) {
		s.Updated = time.Time{} // the wait begins again
		w.resetGates(s)
		return false
	}
	if s.Updated.IsZero() {
		s.Updated = w.in.Now
	}
	if s.Requested.IsZero() {
		s.Requested = s.Updated
	}
	var missing []string
	if ends := s.Updated.Add(s.Wait()); ends.After(w.in.Now) {
		w.plan.wake(ends)
		missing = append(missing, "until "+ends.UTC().Format(time.RFC3339))
	}
	if !w.approve(s, false, &s.ApprovedAfter) {
		missing = append(missing, "for the approval "+api.ApprovalName(w.run.Name, s.Name, false))
	}
	awaited := slices.DeleteFunc(members, func(b *Target) bool { return slices.Contains(w.plan.Progress.NotAwaited, b.Cluster) })
	if missing = append(missing, w.check(s, awaited)...); len(missing) > 0 {
		w.current += ", which waits " + strings.Join(missing, " and ")
		return false
	}
	s.Finished = w.in.Now
	return true
}

// approve records an approval when it is given, and reports whether the stage needs none any more.
func (w *stageWalk) approve(s *placement.RunStage, before bool, at *time.Time) bool {
	if at.IsZero() && slices.Contains(w.in.Run.Approved, api.ApprovalName(w.run.Name, s.Name, before)) {
		*at = w.in.Now
	}
	return !s.NeedsApproval(before) || !at.IsZero()
}

// update lets clusters of the stage be updated, in order and not more at once than maxConcurrency, and reports whether
// all of them have been available with the content of the run, apart from unreachable and failed ones that need not be waited for. At least one of
// them has to be, unless the run continues after failures. More failed updates keep the others from being started.
func (w *stageWalk) update(s *placement.RunStage, members []*Target) bool {
	updating, limit, failed := 0, s.Concurrency(len(members)), []string(nil)
	lost := 0
	maxLost, maxFailed := w.limits(members)
	progress := w.plan.Progress
	s.Failed, s.Unreachable = nil, nil
	var pending []*Target
	for _, b := range members {
		if w.isLost(b) && lost < maxLost && w.in.Run.Halted == "" {
			lost++
			w.may[b.Cluster] = true // once it answers
			s.Unreachable = append(s.Unreachable, b.Cluster)
			progress.NotAwaited = append(progress.NotAwaited, b.Cluster)
			continue
		}
		_, bad := b.failure(w.in)
		switch {
		case !b.has():
			pending = append(pending, b)
		case bad:
			failed = append(failed, b.Cluster)
			if !b.WasAvailable {
				s.Failed = append(s.Failed, b.Cluster)
			}
		case !w.in.updated(b):
			updating++
		}
	}
	noneAnswers := lost > 0 && lost == len(members)
	if noneAnswers {
		progress.NotAwaited, s.Unreachable = progress.NotAwaited[:len(progress.NotAwaited)-lost], nil
		w.current += ", which waits for one of its clusters to answer"
	}
	stuck := ""
	switch {
	case len(failed) > maxFailed, len(failed) > 0 && len(failed)+lost == len(members) && !w.run.Continues():
		s.Failed, progress.Failed = nil, failed
		updating += len(failed)
		stuck = placement.StuckMessage(s.Name, failed)
		w.current += ": " + stuck
	case !w.run.Continues(): // with it, gates ask these clusters too, and nothing waits for one that fails
		progress.NotAwaited = append(progress.NotAwaited, s.Failed...)
	}
	for _, b := range pending {
		switch {
		case w.in.Run.Halted != "":
			w.why[b.Cluster] = "run " + w.run.Name + ": " + w.in.Run.Halted
		case stuck != "":
			w.why[b.Cluster] = "run " + w.run.Name + ": " + stuck
		case b.blocked(), b.Deferral.Why != "", b.Latest == placement.Revision{}: // and takes nobody's place
			w.may[b.Cluster] = true // decide says why it is not
		case updating >= limit:
			w.why[b.Cluster] = fmt.Sprintf("run %s: stage %s updates %d at once (maxConcurrency)", w.run.Name, s.Name, limit)
		default:
			updating++
			w.may[b.Cluster] = true
		}
	}
	w.lost, w.failed = w.lost+lost, w.failed+len(s.Failed)
	return updating+len(pending) == 0 && !noneAnswers
}

// selected reports whether the placement is to be on the cluster.
func (b *Target) selected() bool { return !b.Unscheduled && !b.Removing }

// has reports whether the cluster is assigned the content of the run.
func (b *Target) has() bool {
	return b.HasRevision() && b.Latest != placement.Revision{} && b.Assigned.Hash == b.Latest.Hash
}

// updated reports whether the cluster has been available with its assigned content since that was assigned.
func (in *Input) updated(b *Target) bool { return b.WasAvailable || b.ready(in) }

// decide decides on one cluster. deleting says that all stages are finished, so that what is no longer selected goes.
func (w *stageWalk) decide(b *Target, deleting bool) {
	in, p := w.in, w.plan
	switch {
	case b.wants(in) == drop:
		p.Remove = append(p.Remove, b.Cluster)
	case b.Unscheduled && b.blocked(), !b.Unscheduled && !b.has() && w.may[b.Cluster] && b.blocked():
		if b.Suspended != "" {
			p.addWaiting(b, waitsSuspended, b.Suspended)
		} else {
			p.addWaiting(b, waitsUnreachable, in.message(waitsUnreachable, p))
		}
		in.keepAssigned(p, b)
	case b.Unscheduled && w.left != nil:
		in.remove(p, b, w.left)
	case b.Unscheduled && deleting && w.in.Run.Halted == "":
		p.Remove = append(p.Remove, b.Cluster)
	case b.Unscheduled:
		p.addWaiting(b, waitsExternal, "run "+w.run.Name+": what is no longer selected is removed after the last stage")
		in.keepAssigned(p, b)
	case b.has():
		in.keepAssigned(p, b)
	case b.Latest == placement.Revision{}:
		p.Settled = false
		in.keepAssigned(p, b)
	case w.may[b.Cluster] && b.Deferral.Why != "":
		p.wake(b.Deferral.Until)
		p.Settled = false
		p.addWaiting(b, waitsDeferral, b.Deferral.Why)
		in.keepAssigned(p, b)
	case w.may[b.Cluster]:
		in.assign(p, b, b.Latest)
	default:
		why := w.why[b.Cluster]
		if why == "" {
			why = "run " + w.run.Name + ": the cluster is in no stage"
		}
		p.Settled = false
		p.addWaiting(b, waitsExternal, why)
		in.keepAssigned(p, b)
	}
}
