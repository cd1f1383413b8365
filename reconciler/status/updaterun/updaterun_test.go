package updaterun

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A runScene is a placement with a run of two stages: canary, with a and b of which b is being updated, and prod, with c.
type runScene struct {
	*plan.Placement
	run *placement.Run
	now time.Time
}

func newRunScene() *runScene {
	now := time.Unix(1000, 0)
	on := func(name string, available bool) *plan.OnCluster {
		return &plan.OnCluster{Binding: &placement.Binding{Cluster: name, Assigned: placement.Revision{Hash: "h"}, WasAvailable: available, AssignedAt: now.Add(-time.Minute)}}
	}
	p := &plan.Placement{Spec: &hub.Placement{}, Clusters: []*plan.OnCluster{on("a", true), on("b", false), on("c", false)}, Record: ledger.Placement{Index: 4}}
	p.Record.Runs = []placement.Run{{Name: "web-1", Index: 3, Initialized: now.Add(-2 * time.Minute), Started: now.Add(-2 * time.Minute), Stages: []placement.RunStage{
		{StageConfig: api.StageConfig{Name: "canary"}, Clusters: []string{"a", "b", "gone"}, Started: now.Add(-time.Minute)},
		{StageConfig: api.StageConfig{Name: "prod"}, Clusters: []string{"c"}},
	}}}
	s := &runScene{p, &p.Record.Runs[0], now}
	s.Rollout = rollout.Plan{Run: s.run, Progress: &rollout.RunProgress{Updated: []string{"a"}, Updating: []string{"b"}}}
	return s
}

// conditionText is the conditions as TYPE=STATUS/REASON, and the message of the last.
func conditionText(all []metav1.Condition) string {
	var out []string
	for i, c := range all {
		text := c.Type + "=" + string(c.Status) + "/" + c.Reason
		if i == len(all)-1 {
			text += ": " + c.Message
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// Runs, their stages and their clusters have KubeFleet's conditions, letter for letter.
func TestConditionsOfRuns(t *testing.T) {
	approval := []api.StageTask{{Type: api.ApprovalTask}}
	wait := []api.StageTask{{Type: api.TimedWait, WaitTime: "1m"}}
	const initialized = "Initialized=True/UpdateRunInitializedSuccessfully"
	for name, test := range map[string]struct {
		change      func(s *runScene)
		run, canary string
		asks        string
	}{
		"it makes progress": {func(*runScene) {},
			initialized + " Progressing=True/UpdateRunProgressing: The update run is making progress",
			"Progressing=True/StageUpdatingStarted: Clusters in the stage started updating", ""},
		"it has not started": {func(s *runScene) { s.run.Started, s.run.Stages[0].Started = time.Time{}, time.Time{} },
			initialized + ": The UpdateRun initialized successfully", "", ""},
		"its clusters are in no stage": {func(s *runScene) {
			s.run.Failed = "some clusters are not placed in any stage, total 1, showing up to 10: d"
		},
			"Initialized=False/UpdateRunInitializedFailed: cannot continue the updateRun: failed to validate the updateRun: failed to process the request due to a client error: some clusters are not placed in any stage, total 1, showing up to 10: d", "none", ""},
		"a newer one": {func(s *runScene) { s.run.SupersededBy, s.run.SupersededAt = "web-2", s.now },
			initialized + " Progressing=False/UpdateRunStopped Succeeded=False/UpdateRunSuperseded: The update run web-2 has taken its place", "", ""},
		"it was rolled back": {func(s *runScene) {
			s.run.RolledBack, s.run.SupersededBy = "the update failed on b in stage canary: no image", "web-0"
		},
			initialized + " Progressing=False/UpdateRunFailed Succeeded=False/UpdateRunFailed: the update failed on b in stage canary: no image; the clusters go back to the content of the update run web-0", "", ""},
		"it is stopping": {func(s *runScene) { s.run.Halted = "it is stopped" },
			initialized + " Progressing=Unknown/UpdateRunStopping: The update run is the process of stopping, waiting for all the updating/deleting clusters to finish updating before completing the stop process",
			"Progressing=Unknown/StageUpdatingStopping: Waiting for all the updating clusters to finish updating before completing the stop process", ""},
		"it is stopped": {func(s *runScene) { s.run.Halted, s.Rollout.Progress = "it is stopped", &rollout.RunProgress{} },
			initialized + " Progressing=False/UpdateRunStopped: The update run has been stopped",
			"Progressing=False/StageUpdatingStopped: All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed", ""},
		"a failed update": {func(s *runScene) { s.Rollout.Progress.Failed = []string{"b"} },
			initialized + " Progressing=False/UpdateRunStuck: The updateRun is stuck waiting for b cluster(s) in stage canary to finish updating, please check placement status for potential errors",
			"Progressing=True/StageUpdatingStarted: Clusters in the stage started updating", ""},
		"a failed update that is not waited for": {func(s *runScene) { s.run.Stages[0].Failed = []string{"b"} },
			initialized + " Progressing=True/UpdateRunProgressing: The update run is making progress",
			"Progressing=True/StageUpdatingStarted: Clusters in the stage started updating", ""},
		"it has finished without failed clusters": {func(s *runScene) {
			s.run.Finished, s.run.Stages[0].Updated, s.run.Stages[0].Finished, s.run.Stages[0].Failed = s.now, s.now, s.now, []string{"b"}
		},
			initialized + " Progressing=False/UpdateRunSucceeded Succeeded=True/UpdateRunSucceeded: All stages are completed successfully, except on clusters on which the update has failed: b",
			"Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded: Stage update completed successfully, except on clusters on which the update has failed: b", ""},
		"an approval before": {func(s *runScene) { s.run.Stages[0].BeforeStageTasks, s.run.Stages[0].Started = approval, time.Time{} },
			initialized + " Progressing=False/UpdateRunWaiting: The updateRun is waiting for before-stage tasks in stage canary to complete",
			"Progressing=False/StageUpdatingWaiting: Not all before-stage tasks are completed, waiting for approval", "before canary"},
		"an approval after": {func(s *runScene) { s.run.Stages[0].AfterStageTasks, s.run.Stages[0].Updated = approval, s.now },
			initialized + " Progressing=False/UpdateRunWaiting: The updateRun is waiting for after-stage tasks in stage canary to complete",
			"Progressing=False/StageUpdatingWaiting: All clusters in the stage are updated, waiting for after-stage tasks to complete", "after canary"},
		"a timed wait": {func(s *runScene) { s.run.Stages[0].AfterStageTasks, s.run.Stages[0].Updated = wait, s.now },
			initialized + " Progressing=False/UpdateRunWaiting: The updateRun is waiting for after-stage tasks in stage canary to complete",
			"Progressing=False/StageUpdatingWaiting: All clusters in the stage are updated, waiting for after-stage tasks to complete", ""},
		"a wait without an unreachable cluster": {func(s *runScene) {
			s.run.Stages[0].AfterStageTasks, s.run.Stages[0].Updated, s.run.Stages[0].Unreachable = wait, s.now, []string{"b"}
		},
			initialized + " Progressing=False/UpdateRunWaiting: The updateRun is waiting for after-stage tasks in stage canary to complete",
			"Progressing=False/StageUpdatingWaiting: All clusters in the stage are updated (except unreachable ones: b), waiting for after-stage tasks to complete", ""},
		"it has finished": {func(s *runScene) {
			s.run.Finished, s.run.Stages[0].Updated, s.run.Stages[0].Finished = s.now, s.now, s.now
		},
			initialized + " Progressing=False/UpdateRunSucceeded Succeeded=True/UpdateRunSucceeded: All stages are completed successfully",
			"Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded: Stage update completed successfully", ""},
		"a stage without clusters": {func(s *runScene) {
			s.run.Stages[0].Clusters, s.run.Stages[0].Finished = nil, s.now
		},
			initialized + " Progressing=True/UpdateRunProgressing: The update run is making progress",
			"Progressing=False/StageUpdatingSkippedNoClusters Succeeded=True/StageUpdatingSkippedNoClusters: Stage skipped because it has no clusters", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRunScene()
			test.change(s)
			got := newView(s.Placement, s.run, s.now).status()
			if text := conditionText(got.Conditions); text != test.run {
				t.Errorf("the run:\n%s\nwant\n%s", text, test.run)
			}
			canary := "none"
			if len(got.StagesStatus) > 0 {
				canary = conditionText(got.StagesStatus[0].Conditions)
			}
			if canary != test.canary {
				t.Errorf("the stage:\n%s\nwant\n%s", canary, test.canary)
			}
			asks, u := "", Of(s.Placement, s.now, false)
			if u.ApprovalStage != "" {
				asks = map[bool]string{true: "before ", false: "after "}[u.Before] + u.ApprovalStage
			}
			if asks != test.asks || u.Message == "" || (asks == "") != u.ApprovalSince.IsZero() {
				t.Errorf("asks %q, want %q; %+v", asks, test.asks, u)
			}
		})
	}
}

// A cluster of a stage is updated, being updated, waiting, or has left the placement.
func TestClustersOfRuns(t *testing.T) {
	s := newRunScene()
	s.run.Deletion = placement.RunStage{Clusters: []string{"old"}}
	got := newView(s.Placement, s.run, s.now).status()
	for cluster, want := range map[string]string{
		"a":    "Started=True/ClusterUpdatingStarted Succeeded=True/ClusterUpdatingSucceeded: Cluster update completed successfully",
		"b":    "Started=True/ClusterUpdatingStarted: Cluster update started",
		"gone": "Started=False/ClusterUpdatingSkipped: The cluster is no longer selected by the placement",
		"c":    "",
	} {
		found := false
		for _, stage := range got.StagesStatus {
			for _, c := range stage.Clusters {
				if c.ClusterName == cluster {
					found = true
					if text := conditionText(c.Conditions); text != want {
						t.Errorf("%s: %s, want %s", cluster, text, want)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s is in no stage", cluster)
		}
	}
	if d := got.DeletionStageStatus; d.StageName != "kubernetes-fleet.io/deleteStage" || len(d.Clusters) != 1 || d.Conditions != nil {
		t.Errorf("the removal: %+v", d)
	}
	u := Of(s.Placement, s.now, false)
	if u.Stages[0].Updated != 1 || u.Stages[0].Clusters != 2 || u.Stages[1].Clusters != 1 {
		t.Errorf("%+v", u.Stages)
	}
	if got := Of(&plan.Placement{}, s.now, false); got != nil {
		t.Errorf("a placement without a run: %+v", got)
	}
}

// A cluster without which the run goes on has failed, also once the run is over, until it has been available with the content.
func TestFailedClustersOfRuns(t *testing.T) {
	const failed = "Started=True/ClusterUpdatingStarted Succeeded=False/ClusterUpdatingFailed: The update of the cluster has failed, and the run goes on without it"
	const updated = "Started=True/ClusterUpdatingStarted Succeeded=True/ClusterUpdatingSucceeded: Cluster update completed successfully"
	for name, test := range map[string]struct {
		change func(s *runScene)
		want   string
		done   int
	}{
		"the stage is under way": {func(*runScene) {}, failed, 1},
		"the stage is finished":  {func(s *runScene) { s.run.Stages[0].Updated, s.run.Stages[0].Finished = s.now, s.now }, failed, 1},
		"it is superseded": {func(s *runScene) {
			s.run.Stages[0].Updated, s.run.Stages[0].Finished, s.run.SupersededBy, s.Rollout = s.now, s.now, "web-2", rollout.Plan{}
		}, failed, 1},
		"it has recovered": {func(s *runScene) { s.Rollout.Progress.Updated, s.Rollout.Progress.Updating = []string{"a", "b"}, nil }, updated, 2},
	} {
		s := newRunScene()
		s.run.Stages[0].Failed, s.run.Stages[0].Clusters = []string{"b"}, []string{"a", "b"}
		test.change(s)
		if got := conditionText(newView(s.Placement, s.run, s.now).status().StagesStatus[0].Clusters[1].Conditions); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		if got := Of(s.Placement, s.now, false).Stages[0].Updated; got != test.done {
			t.Errorf("%s: %d clusters are updated, want %d", name, got, test.done)
		}
	}
}

// An unreachable cluster that is not waited for does not count as updated, also once the stage is finished, and once another run has
// taken the place of the run.
func TestUnreachableClustersOfRuns(t *testing.T) {
	for _, state := range []string{"current", "finished", "superseded"} {
		s := newRunScene()
		if state != "current" {
			s.run.Stages[0].Updated, s.run.Stages[0].Finished = s.now, s.now
		}
		if state == "superseded" {
			s.run.SupersededBy, s.Rollout.Run = "web-2", nil
		}
		s.Rollout.Progress.Updating, s.run.Stages[0].Unreachable = nil, []string{"b"}
		stage := newView(s.Placement, s.run, s.now).status().StagesStatus[0]
		got := conditionText(stage.Clusters[1].Conditions)
		want := "Started=False/ClusterUpdatingSkipped: The stage has ended without the cluster, which was unreachable and does not have the content yet"
		if state == "current" {
			want = "Started=False/ClusterUpdatingSkipped: The cluster is unreachable and is not waited for"
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		text := Of(s.Placement, s.now, false).Stages[0].Text()
		if want := "stage canary: 1 of 2 clusters updated, 1 skipped as unreachable"; text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

// With rollout.approvals: git, the text says what to commit, and does not suggest a review.
func TestApprovalsInGit(t *testing.T) {
	s := newRunScene()
	s.run.Stages[0].BeforeStageTasks = []api.StageTask{{Type: api.ApprovalTask}}
	s.Runs = []*hub.StagedRun{{Name: "web-1", ByReview: []string{"canary"}}}
	for placement, kind := range map[string]string{"crp/web": "ClusterApprovalRequest", "rp/shop/web": "ApprovalRequest"} {
		u := Of(s.Placement, s.now, true)
		want := "an approval before stage canary is missing: commit the " + kind + " web-1-before-canary with parentStageRollout: web-1 and targetStage: canary"
		if got := u.Where(placement); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Clusters have the overrides of the content of the run, if that is the content in force.
func TestOverridesOfRuns(t *testing.T) {
	s := newRunScene()
	s.run.Index = s.Record.Index
	s.Clusters[1].Content = &work.Rendered{Overrides: []api.NamespacedName{{Namespace: "web", Name: "less"}}, ClusterOverrides: []string{"eu"}}
	cluster := func() api.ClusterUpdatingStatus {
		return newView(s.Placement, s.run, s.now).status().StagesStatus[0].Clusters[1]
	}
	if got := cluster(); len(got.ResourceOverrideSnapshots) != 1 || !slices.Equal(got.ClusterResourceOverrideSnapshots, []string{"eu"}) {
		t.Errorf("%+v", got)
	}
	s.run.Index--
	if got := cluster(); len(got.ResourceOverrideSnapshots)+len(got.ClusterResourceOverrideSnapshots) > 0 {
		t.Errorf("of an earlier content: %+v", got)
	}
}

// A stage without clusters is skipped together with its tasks: nobody is asked to approve it.
func TestSkippedStagesAskForNothing(t *testing.T) {
	s := newRunScene()
	stage := &s.run.Stages[0]
	stage.Clusters, stage.Updated, stage.Finished = nil, s.now, s.now
	stage.BeforeStageTasks, stage.AfterStageTasks = []api.StageTask{{Type: api.ApprovalTask}}, []api.StageTask{{Type: api.ApprovalTask}, {Type: api.TimedWait, WaitTime: "1m"}}
	runs, requests := Objects(s.Placement, nil, s.now)
	if len(requests) > 0 {
		t.Errorf("requests: %+v", requests)
	}
	got := runs[0].Status.StagesStatus[0]
	for _, task := range append(got.BeforeStageTaskStatus, got.AfterStageTaskStatus...) {
		if len(task.Conditions) > 0 {
			t.Errorf("task %s: %s", task.Type, conditionText(task.Conditions))
		}
	}
}

// The run in force is reported, also if a later one has appeared that has not started.
func TestTheRunInForceIsReported(t *testing.T) {
	s := newRunScene()
	s.Record.Runs = append(s.Record.Runs, placement.Run{Name: "web-2", Initialized: s.now})
	if got := Of(s.Placement, s.now, false); got.Name != "web-1" {
		t.Errorf("%s is reported", got.Name)
	}
}

// Requests are there from the turn of their tasks on, and say who has approved them.
func TestApprovalRequests(t *testing.T) {
	s := newRunScene()
	approval := []api.StageTask{{Type: api.ApprovalTask}}
	for i := range s.run.Stages {
		s.run.Stages[i].BeforeStageTasks, s.run.Stages[i].AfterStageTasks = approval, approval
	}
	s.run.Stages[0].ApprovedBefore = s.now
	s.run.Approvals = []placement.Approval{{Request: "web-1-before-canary", By: "ada", Reason: "looks well"}}
	text := func() string {
		_, requests := Objects(s.Placement, nil, s.now)
		var out []string
		for _, r := range requests {
			if r.Generation != 1 || r.Labels[api.TargetRunLabel] != "web-1" || r.Kind != "ClusterApprovalRequest" {
				t.Errorf("%+v", r)
			}
			out = append(out, r.Name+" "+r.Labels[api.TaskTypeLabel]+" "+conditionText(r.Status.Conditions))
		}
		return strings.Join(out, "\n")
	}
	const accepted = "web-1-before-canary beforeStage Approved=True/ClusterApprovalRequestApproved ApprovalAccepted=True/ApprovalRequestApprovalAccepted: The approval request has been approved and cannot be reverted"
	if got := text(); got != accepted {
		t.Errorf("the canary is being updated:\n%s", got)
	}
	s.run.Stages[0].Updated = s.now
	if got := text(); got != accepted+"\nweb-1-after-canary afterStage " {
		t.Errorf("the canary is updated:\n%s", got)
	}
	s.run.Stages[0].ApprovedAfter, s.run.Stages[0].Finished = s.now, s.now
	if got := text(); !strings.HasSuffix(got, "\nweb-1-before-prod beforeStage ") {
		t.Errorf("the canary is finished:\n%s", got)
	}
}

// A run has an event whenever it comes to another point, with the command that approves what it waits for.
func TestEventsOfRuns(t *testing.T) {
	s := newRunScene()
	at := func(change func()) string {
		before := *s.Placement
		before.Record.Runs = []placement.Run{s.run.Clone()}
		was := Of(s.Placement, s.now, false)
		change()
		var out []string
		for _, e := range Events(&before, was, s.Placement, Of(s.Placement, s.now, false)) {
			out = append(out, e.Type+" "+e.Reason+": "+e.Message)
		}
		return strings.Join(out, "\n")
	}
	for _, test := range []struct {
		change func()
		want   string
	}{
		{func() {}, ""},
		{func() { s.Rollout.Progress.Failed = []string{"b"} }, "Warning UpdateRunStuck: run web-1: The updateRun is stuck waiting for b cluster(s) in stage canary to finish updating, please check placement status for potential errors"},
		{func() {
			s.run.Stages[0].AfterStageTasks, s.run.Stages[0].Updated = []api.StageTask{{Type: api.ApprovalTask}}, s.now
		}, "Normal UpdateRunWaiting: run web-1: an approval after stage canary is missing: gitfleet approve crp/web --stage canary --run web-1"},
		{func() { s.run.Stages[0].Finished, s.Rollout.Progress.Failed = s.now, nil }, "Normal StageUpdatingSucceeded: run web-1, stage canary: Stage update completed successfully\nNormal UpdateRunProgressing: run web-1: The update run is making progress"},
		{func() { s.run.Finished = s.now }, "Normal UpdateRunSucceeded: run web-1: All stages are completed successfully"},
	} {
		s.Key = api.PlacementKey{Name: "web"}
		if got := at(test.change); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
