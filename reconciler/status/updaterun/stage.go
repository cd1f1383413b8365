package updaterun

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// stage is the status of a stage, of which the removal has the index after the last one.
func (v *view) stage(i int, s *placement.RunStage) api.StageUpdatingStatus {
	out := api.StageUpdatingStatus{StageName: s.Name, Clusters: []api.ClusterUpdatingStatus{}, StartTime: timeOf(s.Started), EndTime: timeOf(s.Finished), Conditions: v.stageConditions(i, s)}
	for _, name := range s.Clusters {
		out.Clusters = append(out.Clusters, v.cluster(i, s, name))
	}
	for _, task := range s.BeforeStageTasks {
		out.BeforeStageTaskStatus = append(out.BeforeStageTaskStatus, v.task(s, task, true, v.run.Entered(i)))
	}
	for _, task := range s.AfterStageTasks {
		out.AfterStageTaskStatus = append(out.AfterStageTaskStatus, v.task(s, task, false, cmp.Or(s.Requested, s.Updated)))
	}
	return out
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

func (v *view) stageConditions(i int, s *placement.RunStage) []metav1.Condition {
	progressing := func(status metav1.ConditionStatus, reason, message string, at time.Time) []metav1.Condition {
		return []metav1.Condition{v.condition(api.RunProgressing, status, reason, message, at)}
	}
	entered := time.Time{}
	if !v.run.Started.IsZero() {
		entered = v.run.Entered(i)
	}
	switch {
	case s.Skipped() && i < len(v.run.Stages):
		const reason, message = "StageUpdatingSkippedNoClusters", "Stage skipped because it has no clusters"
		return append(progressing(metav1.ConditionFalse, reason, message, s.Finished), v.condition(api.RunSucceeded, metav1.ConditionTrue, reason, message, s.Finished))
	case !s.Finished.IsZero():
		const reason = "StageUpdatingSucceeded"
		return append(progressing(metav1.ConditionFalse, reason, "All clusters in the stage are updated"+exceptUnreachable(s)+" and after-stage tasks are completed", s.Finished),
			v.condition(api.RunSucceeded, metav1.ConditionTrue, reason, "Stage update completed successfully"+withoutFailed(s.Failed), s.Finished))
	case entered.IsZero() && s.Started.IsZero() || v.run.SupersededBy != "":
		return nil
	case v.run.Halted != "" && len(v.updating) > 0:
		return progressing(metav1.ConditionUnknown, "StageUpdatingStopping", "Waiting for all the updating clusters to finish updating before completing the stop process", cmp.Or(v.run.HaltedSince, entered))
	case v.run.Halted != "":
		return progressing(metav1.ConditionFalse, "StageUpdatingStopped", "All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed", cmp.Or(v.run.HaltedSince, entered))
	case s.NeedsApproval(true) && s.ApprovedBefore.IsZero():
		return progressing(metav1.ConditionFalse, "StageUpdatingWaiting", "Not all before-stage tasks are completed, waiting for approval", entered)
	case !s.Updated.IsZero():
		return progressing(metav1.ConditionFalse, "StageUpdatingWaiting", "All clusters in the stage are updated"+exceptUnreachable(s)+", waiting for after-stage tasks to complete", s.Updated)
	case s.Started.IsZero():
		return nil
	}
	return progressing(metav1.ConditionTrue, "StageUpdatingStarted", "Clusters in the stage started updating", s.Started)
}

// cluster is the status of a cluster in a stage.
func (v *view) cluster(i int, s *placement.RunStage, name string) api.ClusterUpdatingStatus {
	out := api.ClusterUpdatingStatus{ClusterName: name}
	set := func(typ string, status metav1.ConditionStatus, reason, message string, at time.Time) {
		out.Conditions = append(out.Conditions, v.condition(typ, status, reason, message, at))
	}
	c := v.p.On(name)
	removal := i == len(v.run.Stages)
	if c != nil && c.Content != nil && !removal && v.run.Index == v.p.Record.Index { // of other contents it is not known
		out.ResourceOverrideSnapshots, out.ClusterResourceOverrideSnapshots = c.Content.Overrides, c.Content.ClusterOverrides
	}
	started, done := time.Time{}, time.Time{}
	switch {
	case removal && (c == nil || !s.Finished.IsZero()):
		started, done = s.Started, cmp.Or(s.Finished, s.Started)
	case removal && c.Binding.Removing:
		started = s.Started
	case removal:
	case v.run.Active() && s.Finished.IsZero() && !v.member(name):
		set(api.ClusterStarted, metav1.ConditionFalse, "ClusterUpdatingSkipped", "The cluster is no longer selected by the placement", cmp.Or(s.Started, v.run.Initialized))
	case slices.Contains(s.Unreachable, name):
		why := "The cluster is unreachable and is not waited for"
		if !s.Finished.IsZero() {
			why = "The stage has ended without the cluster, which was unreachable and does not have the content yet"
		}
		set(api.ClusterStarted, metav1.ConditionFalse, "ClusterUpdatingSkipped", why, cmp.Or(s.Started, v.run.Initialized))
	case v.updated[name]:
		started = latest(c.Binding.AssignedAt, s.Started)
		done = latest(started, availableAt(c))
	case v.updating[name]:
		started = latest(c.Binding.AssignedAt, s.Started)
	case slices.Contains(s.Failed, name):
		started = cmp.Or(s.Started, s.Updated)
	case !s.Updated.IsZero():
		started, done = cmp.Or(s.Started, s.Updated), s.Updated
	}
	if !started.IsZero() {
		set(api.ClusterStarted, metav1.ConditionTrue, "ClusterUpdatingStarted", "Cluster update started", started)
	}
	if slices.Contains(s.Failed, name) && !v.updated[name] {
		set(api.RunSucceeded, metav1.ConditionFalse, "ClusterUpdatingFailed", "The update of the cluster has failed, and the run goes on without it", started)
	}
	if !done.IsZero() {
		set(api.RunSucceeded, metav1.ConditionTrue, "ClusterUpdatingSucceeded", "Cluster update completed successfully", done)
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// availableAt is when the content of a cluster was first available; zero if that is not recorded.
func availableAt(c *plan.OnCluster) time.Time {
	if c.Entry == nil {
		return time.Time{}
	}
	return c.Entry.AvailableAt()
}

// gate returns the condition GatePassed of a gate that has been evaluated.
func (v *view) gate(g *placement.RunGate) metav1.Condition {
	switch {
	case g.HasFailed():
		return v.condition(api.GatePassed, metav1.ConditionFalse, "GateFailed", g.Answer, g.Failed)
	case g.Passed.IsZero():
		return v.condition(api.GatePassed, metav1.ConditionFalse, "GateNotPassed", g.Answer, g.Since)
	}
	return v.condition(api.GatePassed, metav1.ConditionTrue, "GatePassed", g.Answer, g.Passed)
}

// task is the status of a task that is due since a time; zero if it is not yet.
func (v *view) task(s *placement.RunStage, task api.StageTask, before bool, due time.Time) api.StageTaskStatus {
	out := api.StageTaskStatus{Type: task.Type}
	set := func(typ, reason, message string, at time.Time) {
		if !at.IsZero() {
			out.Conditions = append(out.Conditions, v.condition(typ, metav1.ConditionTrue, reason, message, at))
		}
	}
	if task.Type == api.GateTask {
		out.GateName = task.GateName
		for _, g := range s.Gates {
			if g.Name == task.GateName && g.Answer != "" {
				out.Conditions = append(out.Conditions, v.gate(&g))
			}
		}
		return out
	}
	if task.Type != api.ApprovalTask {
		if ends := s.Updated.Add(s.Wait()); !s.Updated.IsZero() && !s.Skipped() && (!s.Finished.IsZero() || !v.now.Before(ends)) {
			set(api.WaitTimeElapsed, "AfterStageTaskWaitTimeElapsed", "Wait time elapsed", ends)
		}
		return out
	}
	if out.ApprovalRequestName = api.ApprovalName(v.run.Name, s.Name, before); s.Skipped() {
		return out
	}
	accepted := s.ApprovedAfter
	if before {
		accepted = s.ApprovedBefore
	}
	set(api.RequestCreated, "StageTaskApprovalRequestCreated", "ApprovalRequest object is created", due)
	set(api.RequestApproved, "StageTaskApprovalRequestApproved", "ApprovalRequest object is approved", accepted)
	return out
}

// exceptUnreachable names the clusters of a stage that is updated without them since they are unreachable; empty if there are none.
func exceptUnreachable(s *placement.RunStage) string {
	if len(s.Unreachable) == 0 {
		return ""
	}
	return " (except unreachable ones: " + strings.Join(s.Unreachable, ", ") + ")"
}

// withoutFailed names the clusters without which a run or a stage has succeeded; empty if there are none.
func withoutFailed(clusters []string) string {
	if len(clusters) == 0 {
		return ""
	}
	return ", except on clusters on which the update has failed: " + strings.Join(clusters, ", ")
}
