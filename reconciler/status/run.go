package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An UpdateRun is a staged update run of a placement.
type UpdateRun struct {
	Name      string `json:"name"`
	Automatic bool   `json:"automatic,omitempty"` // it was made for a commit
	Commit    string `json:"commit"`              // whose content it brings
	// Reason and Message are those of KubeFleet's condition Progressing, or of Succeeded or Initialized once the run has ended.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Asks is the stage that waits for an approval; empty if none does. Before says that its clusters are not updated before that.
	// AsksSince is since when it waits.
	Asks   string `json:"asks,omitempty"`
	Before bool   `json:"before,omitempty"`
	// ByReview reports whether an approving review of the pull request with the content also counts as the approval. Proven is the
	// fingerprint of the content of the last finished run; empty if there is none.
	ByReview bool   `json:"byReview,omitempty"`
	Proven   string `json:"-"`
	// InGit reports whether the configuration asks for a commit as the approval.
	InGit     bool          `json:"inGit,omitempty"`
	AsksSince time.Time     `json:"asksSince,omitzero"`
	Gates     []string      `json:"gates,omitempty"` // that have not passed and are asked now, each with its answer
	Stages    []UpdateStage `json:"stages,omitempty"`
	Finished  time.Time     `json:"finished,omitzero"`
}

// CommitApproval says what to commit to approve a stage of a run.
func CommitApproval(placement api.PlacementKey, run, stage string, before bool) string {
	_, kind := stagedKinds(placement.Namespace)
	return fmt.Sprintf("commit the %s %s with parentStageRollout: %s and targetStage: %s", kind, api.ApprovalName(run, stage, before), run, stage)
}

// Where describes the current state of the run and the answers of its gates. If the run waits for an approval, it includes the command
// that gives the approval, or what to commit.
func (u *UpdateRun) Where(placement string) string {
	return strings.Join(append([]string{u.WhereWithoutGates(placement)}, u.Gates...), "; ")
}

// WhereWithoutGates is Where without the answers of gates, which the texts of the stages include too.
func (u *UpdateRun) WhereWithoutGates(placement string) string {
	if u.Asks == "" {
		return u.Message
	}
	when := "after"
	if u.Before {
		when = "before"
	}
	text := fmt.Sprintf("an approval %s stage %s is missing: ", when, u.Asks)
	if key, _ := api.ParsePlacement(placement); u.InGit {
		text += CommitApproval(key, u.Name, u.Asks, u.Before)
	} else {
		text += fmt.Sprintf("gitfleet approve %s --stage %s --run %s", placement, u.Asks, u.Name)
	}
	if u.ByReview {
		text += ", or an approving review of the pull request of commit " + u.Commit[:min(8, len(u.Commit))]
	}
	return text
}

// An UpdateStage is a stage of a run.
type UpdateStage struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"` // without those that have left the placement
	Updated  int    `json:"updated"`  // of them, those that have been available with the content
	// Unreachable is the number of clusters that are skipped as unreachable, of a finished stage also of those that have answered since
	// and do not have the content yet.
	Unreachable int       `json:"unreachable,omitempty"`
	Finished    time.Time `json:"finished,omitzero"`
	Waits       []string  `json:"waits,omitempty"` // what is missing of its tasks, if it is the turn of the stage
	// Gates are those that are asked now, or have been, if it is the turn of the stage.
	Gates []UpdateGate `json:"gates,omitempty"`
}

// An UpdateGate is a gate of the stage whose turn it is.
type UpdateGate struct {
	Name  string              `json:"name"`
	State placement.GateState `json:"state"`
	Due   time.Time           `json:"due,omitzero"` // when it could have passed at the earliest; zero once it has passed or failed
}

// gates are the gates of a stage whose clusters are updated.
func gates(s *placement.RunStage) (out []UpdateGate) {
	for i := range s.Gates {
		g := UpdateGate{Name: s.Gates[i].Name, State: s.Gates[i].State()}
		if s.Gates[i].Passed.IsZero() && !s.Gates[i].HasFailed() {
			g.Due = s.Due(&s.Gates[i])
		}
		out = append(out, g)
	}
	return out
}

// Text says how many clusters of the stage are updated, and what of its tasks is missing.
func (s *UpdateStage) Text() string {
	clusters := "clusters"
	if s.Clusters == 1 {
		clusters = "cluster"
	}
	text := fmt.Sprintf("stage %s: %d of %d %s updated", s.Name, s.Updated, s.Clusters, clusters)
	if s.Unreachable > 0 {
		text += fmt.Sprintf(", %d skipped as unreachable", s.Unreachable)
	}
	if len(s.Waits) > 0 {
		text += ", waits for " + strings.Join(s.Waits, " and for ")
	}
	return text
}

// updateRun returns the update run of a placement that is in force, or else the newest; nil if there is none.
func updateRun(in Input, p *plan.Placement) *UpdateRun {
	n := len(p.Record.Runs)
	if n == 0 {
		return nil
	}
	at := n - 1
	if inForce := p.Rollout.Run; inForce != nil {
		at = slices.IndexFunc(p.Record.Runs, func(r placement.Run) bool { return r.Name == inForce.Name })
		if newest := &p.Record.Runs[n-1]; newest.RolledBack != "" && newest.SupersededBy == inForce.Name {
			at = n - 1
		}
	}
	v := newRunView(p, &p.Record.Runs[at], in.Now)
	out := &UpdateRun{Name: v.run.Name, Automatic: v.run.Automatic, Commit: v.run.Content.Commit, Finished: v.run.Finished}
	for i := range v.run.Stages {
		s := &v.run.Stages[i]
		stage := UpdateStage{Name: s.Name, Finished: s.Finished}
		for _, name := range s.Clusters {
			if !v.member(name) {
				continue
			}
			stage.Clusters++
			switch {
			case slices.Contains(s.Unreachable, name):
				stage.Unreachable++
			case !s.Finished.IsZero() && !slices.Contains(s.Failed, name) || v.updated[name]:
				stage.Updated++
			}
		}
		if i == v.run.Turn() && v.run.Active() && v.run.Halted == "" {
			stage.Waits = v.missingTasks(s)
			if !s.Updated.IsZero() {
				stage.Gates = gates(s)
			}
		}
		out.Stages = append(out.Stages, stage)
	}
	if asks, before := v.run.Asks(); asks != nil && v.run.Halted == "" {
		out.Asks, out.Before, out.AsksSince = asks.Name, before, cmp.Or(asks.Requested, asks.Updated)
		out.InGit, out.Proven = in.ApprovalsInGit, provenByRun(p.Record.Runs)
		out.ByReview = !out.InGit && byReview(p, v.run.Name, asks.Name)
		if before {
			out.AsksSince = v.run.Entered(v.run.Turn())
		}
	}
	c := v.conditions()
	out.Reason, out.Message = c[len(c)-1].Reason, c[len(c)-1].Message
	if v.run.Halted == "" {
		out.Gates = v.run.WaitsFor()
	}
	if v.run.Halted != "" && v.run.Active() {
		out.Message += ": " + v.run.Halted
	} else if p.RunUnknown != "" && v.run.Active() {
		out.Message += "; " + p.RunUnknown
	}
	return out
}

// missingTasks returns what is missing of the tasks of the stage whose turn it is.
func (v *runView) missingTasks(s *placement.RunStage) (missing []string) {
	if s.NeedsApproval(true) && s.ApprovedBefore.IsZero() {
		return []string{"the approval " + api.ApprovalName(v.run.Name, s.Name, true)}
	}
	if s.Updated.IsZero() {
		return nil
	}
	if ends := s.Updated.Add(s.Wait()); ends.After(v.now) {
		missing = append(missing, "the end of "+s.Wait().String()+" at "+ends.UTC().Format(time.RFC3339))
	}
	if s.NeedsApproval(false) && s.ApprovedAfter.IsZero() {
		missing = append(missing, "the approval "+api.ApprovalName(v.run.Name, s.Name, false))
	}
	return append(missing, v.run.WaitsFor()...)
}

// byReview reports whether a review of the pull request approves a stage of a run.
func byReview(p *plan.Placement, run, stage string) bool {
	return slices.ContainsFunc(p.Runs, func(d *hub.StagedRun) bool { return d.Name == run && slices.Contains(d.ByReview, stage) })
}

// provenByRun returns the fingerprint of the content of the run that finished last; empty if none has.
func provenByRun(runs []placement.Run) string {
	var last *placement.Run
	for i := range runs {
		if r := &runs[i]; !r.Finished.IsZero() && (last == nil || r.Finished.After(last.Finished)) {
			last = r
		}
	}
	if last == nil {
		return ""
	}
	return last.Content.Hash
}

// A runView tells what is recorded of a run as KubeFleet's status.
type runView struct {
	run *placement.Run
	p   *plan.Placement
	// failed are the clusters for which the run in force waits in vain, and updating and updated those with its content.
	failed            []string
	updating, updated map[string]bool
	// now is the time of the plan, and generation that of the spec of the run.
	now        time.Time
	generation int64
}

func newRunView(p *plan.Placement, run *placement.Run, now time.Time) *runView {
	v := &runView{run: run, p: p, now: now}
	inForce, progress := p.Rollout.Run, p.Rollout.Progress
	if inForce == nil || inForce.Name != run.Name || progress == nil {
		return v
	}
	v.failed, v.updating, v.updated = progress.Failed, map[string]bool{}, map[string]bool{}
	for _, name := range progress.Updating {
		v.updating[name] = true
	}
	for _, name := range progress.Updated {
		v.updated[name] = true
	}
	return v
}

// member reports whether the placement is still to be on a cluster.
func (v *runView) member(cluster string) bool {
	c := v.p.On(cluster)
	return c != nil && !c.Binding.Unscheduled && !c.Binding.Removing
}

// status is the status of the run.
func (v *runView) status() api.StagedUpdateRunStatus {
	out := api.StagedUpdateRunStatus{Conditions: v.conditions()}
	if v.run.Failed != "" {
		return out
	}
	out.PolicySnapshotIndexUsed, out.ResourceSnapshotIndexUsed = "0", index(v.run.Index)
	out.ApplyStrategy, out.StagedUpdateStrategySnapshot = v.p.Spec.Spec.Strategy.ApplyStrategy, &api.StagedUpdateStrategySpec{}
	for i := range v.run.Stages {
		s := &v.run.Stages[i]
		out.PolicyObservedClusterCount += len(s.Clusters)
		out.StagedUpdateStrategySnapshot.Stages = append(out.StagedUpdateStrategySnapshot.Stages, s.StageConfig)
		out.StagesStatus = append(out.StagesStatus, v.stage(i, s))
	}
	deletion := v.run.Deletion
	deletion.Name = api.DeleteStage
	last := v.stage(len(v.run.Stages), &deletion)
	out.DeletionStageStatus = &last
	return out
}

// condition returns a condition of the run or of a part of it.
func (v *runView) condition(typ string, status metav1.ConditionStatus, reason, message string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at), ObservedGeneration: v.generation}
}

// clientError introduces KubeFleet's messages about what a user can correct.
const clientError = "cannot continue the updateRun: failed to validate the updateRun: failed to process the request due to a client error: "

// conditions are the conditions of the run, the one that says where it is last.
func (v *runView) conditions() []metav1.Condition {
	run, initialized := v.run, cmp.Or(v.run.Initialized, v.run.Started)
	if run.Failed != "" {
		return []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionFalse, "UpdateRunInitializedFailed", clientError+run.Failed, initialized)}
	}
	out := []metav1.Condition{v.condition(api.RunInitialized, metav1.ConditionTrue, "UpdateRunInitializedSuccessfully", "The UpdateRun initialized successfully", initialized)}
	switch {
	case run.RolledBack != "":
		return append(out, v.condition(api.RunProgressing, metav1.ConditionFalse, "UpdateRunFailed", "The stages are aborted due to a non-recoverable error", run.SupersededAt),
			v.condition(api.RunSucceeded, metav1.ConditionFalse, "UpdateRunFailed", run.RolledBack+"; the clusters go back to the content of the update run "+run.SupersededBy, run.SupersededAt))
	case run.SupersededBy != "":
		at := cmp.Or(run.SupersededAt, run.Started)
		return append(out, v.condition(api.RunProgressing, metav1.ConditionFalse, "UpdateRunStopped", "The update run has been stopped", at),
			v.condition(api.RunSucceeded, metav1.ConditionFalse, "UpdateRunSuperseded", "The update run "+run.SupersededBy+" has taken its place", at))
	case !run.Finished.IsZero():
		return append(out, v.condition(api.RunProgressing, metav1.ConditionFalse, "UpdateRunSucceeded", "All stages are completed", run.Finished),
			v.condition(api.RunSucceeded, metav1.ConditionTrue, "UpdateRunSucceeded", "All stages are completed successfully"+withoutFailed(run.FailedClusters()), run.Finished))
	case run.Started.IsZero():
		return out
	}
	return append(out, v.progressing())
}

// progressing is the condition Progressing of a run that has started and has not ended.
func (v *runView) progressing() metav1.Condition {
	turn := v.run.Turn()
	at := func(times ...time.Time) time.Time {
		return slices.MaxFunc(append(times, v.run.Entered(turn)), time.Time.Compare)
	}
	stage := &v.run.Deletion
	if turn < len(v.run.Stages) {
		stage = &v.run.Stages[turn]
	}
	set := func(status metav1.ConditionStatus, reason, message string, since time.Time) metav1.Condition {
		return v.condition(api.RunProgressing, status, reason, message, since)
	}
	const waiting = "The updateRun is waiting for %s-stage tasks in stage %s to complete"
	asks, before := v.run.Asks()
	switch {
	case v.run.Halted != "" && len(v.updating) > 0:
		return set(metav1.ConditionUnknown, "UpdateRunStopping", "The update run is the process of stopping, waiting for all the updating/deleting clusters to finish updating before completing the stop process", at(v.run.HaltedSince))
	case v.run.Halted != "":
		return set(metav1.ConditionFalse, "UpdateRunStopped", "The update run has been stopped", at(v.run.HaltedSince))
	case asks != nil && before:
		return set(metav1.ConditionFalse, "UpdateRunWaiting", fmt.Sprintf(waiting, "before", stage.Name), at())
	case !stage.Updated.IsZero():
		return set(metav1.ConditionFalse, "UpdateRunWaiting", fmt.Sprintf(waiting, "after", stage.Name), at(stage.Updated))
	case len(v.failed) > 0:
		return set(metav1.ConditionFalse, "UpdateRunStuck", placement.StuckMessage(stage.Name, v.failed), at(stage.Started))
	}
	return set(metav1.ConditionTrue, "UpdateRunProgressing", "The update run is making progress", at(stage.Started))
}

// stage is the status of a stage, of which the removal has the index after the last one.
func (v *runView) stage(i int, s *placement.RunStage) api.StageUpdatingStatus {
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

func (v *runView) stageConditions(i int, s *placement.RunStage) []metav1.Condition {
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
func (v *runView) cluster(i int, s *placement.RunStage, name string) api.ClusterUpdatingStatus {
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

// gate is the condition of a gate that was asked.
func (v *runView) gate(g *placement.RunGate) metav1.Condition {
	switch {
	case g.HasFailed():
		return v.condition(api.GatePassed, metav1.ConditionFalse, "GateFailed", g.Answer, g.Failed)
	case g.Passed.IsZero():
		return v.condition(api.GatePassed, metav1.ConditionFalse, "GateNotPassed", g.Answer, g.Since)
	}
	return v.condition(api.GatePassed, metav1.ConditionTrue, "GatePassed", g.Answer, g.Passed)
}

// task is the status of a task that is due since a time; zero if it is not yet.
func (v *runView) task(s *placement.RunStage, task api.StageTask, before bool, due time.Time) api.StageTaskStatus {
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
