package updaterun

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// status is the status of the run.
func (v *view) status() api.StagedUpdateRunStatus {
	out := api.StagedUpdateRunStatus{Conditions: v.conditions()}
	if v.run.Failed != "" {
		return out
	}
	out.PolicySnapshotIndexUsed, out.ResourceSnapshotIndexUsed = "0", metadata.SnapshotIndex(v.run.Index)
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

// conditions are the conditions of the run, the one that says where it is last.
func (v *view) conditions() []metav1.Condition {
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
func (v *view) progressing() metav1.Condition {
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
	asks, before := v.run.AwaitedApproval()
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
