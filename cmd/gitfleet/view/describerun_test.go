package view

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/reports"
)

// No line of a description is longer than the page, whatever is waited for.
func TestDescribeBreaksLongLines(t *testing.T) {
	waits := "the gate errors: cannot be evaluated since 2026-11-28T12:00:00Z: https://prometheus.example.com answers 503: the server is starting, and its log is being read"
	d := &status.Detail{Placement: "crp/web", Warnings: []string{"run web-1 UpdateRunInitializedFailed: some clusters are not placed in any stage, total 1, showing up to 10: d"}, UpdateRun: &updaterun.Run{
		Name: "web-1", Commit: reports.FirstCommit, Message: "it waits", Stages: []updaterun.Stage{{Name: "canary", Waits: []string{"the approval web-1-after-canary", waits}}},
	}}
	s := &description{Page: output.Page{Width: 80}, now: reports.Noon}
	s.placement(&status.Report{At: reports.Noon, Details: []*status.Detail{d}}, "crp/web")
	s.run(&api.ClusterStagedUpdateRun{Status: api.StagedUpdateRunStatus{StagesStatus: []api.StageUpdatingStatus{{
		StageName: strings.Repeat("canary", 10), Conditions: []metav1.Condition{{Reason: "StageUpdatingWaiting", LastTransitionTime: metav1.NewTime(reports.Noon)}},
		AfterStageTaskStatus: []api.StageTaskStatus{{Type: api.GateTask, GateName: "errors", Conditions: []metav1.Condition{{Reason: "GateNotPassed", Message: waits}}}},
	}}}})
	text := s.b.String() + explanationText(&status.Explanation{Clusters: []status.ExplainedCluster{{Cluster: "ams", Waits: waits}}}, output.Page{Width: 80, Terminal: true})
	for line := range strings.Lines(text) {
		if output.Width(line) > 81 {
			t.Errorf("%d columns: %s", output.Width(line), line)
		}
	}
}

// What a gate answers is said once, of the stage that waits for it.
func TestAnswersOfGatesAreSaidOnce(t *testing.T) {
	const waits = "the gate errors: cannot be evaluated"
	d := &status.Detail{Placement: "crp/web", UpdateRun: &updaterun.Run{
		Name: "web-1", Message: "it waits", Gates: []string{waits}, Stages: []updaterun.Stage{{Name: "canary", Waits: []string{waits}}},
	}}
	r := &status.Report{At: reports.Noon, Details: []*status.Detail{d}}
	for command, got := range map[string]string{
		"describe": described(func(s *description) { s.placement(r, "crp/web") }),
		"tree":     treeText(&status.Tree{Placement: "crp/web", UpdateRun: d.UpdateRun}, r, output.Page{}),
	} {
		if strings.Count(got, waits) != 1 || !strings.Contains(got, "it waits") {
			t.Errorf("%s says\n%s", command, got)
		}
	}
}

// A run is described with its stages, and these with their tasks and clusters.
func TestDescribeARun(t *testing.T) {
	is := func(typ string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(reports.Noon.Add(-time.Minute))}}
	}
	run := &api.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: api.StagedUpdateRunSpec{PlacementName: "web", StrategyName: "careful", State: api.RunRun}}
	run.Status = api.StagedUpdateRunStatus{
		Conditions: is(api.RunProgressing, metav1.ConditionFalse, "UpdateRunWaiting", "it waits"),
		StagesStatus: []api.StageUpdatingStatus{
			{
				StageName: "canary", Conditions: is(api.RunProgressing, metav1.ConditionFalse, "StageUpdatingWaiting", "it waits"),
				Clusters: []api.ClusterUpdatingStatus{{ClusterName: "ams", Conditions: is(api.RunSucceeded, metav1.ConditionTrue, "ClusterUpdatingSucceeded", "")}},
				AfterStageTaskStatus: []api.StageTaskStatus{
					{Type: api.ApprovalTask, ApprovalRequestName: "web-1-after-canary", Conditions: is(api.RequestCreated, metav1.ConditionTrue, "StageTaskApprovalRequestCreated", "")},
					{Type: api.GateTask, GateName: "bake", Conditions: is(api.GatePassed, metav1.ConditionFalse, "GateNotPassed", "not yet")},
					{Type: api.TimedWait},
				},
			},
			{StageName: "prod", Clusters: []api.ClusterUpdatingStatus{{ClusterName: "ber"}}},
		},
	}
	const want = "Name: web-1 Placement: crp/web Strategy: careful State: Run Conditions: Progressing False UpdateRunWaiting for 60s it waits " +
		"Stages: canary: StageUpdatingWaiting for 60s after: Approval web-1-after-canary: missing for 60s " +
		"after: Gate bake: GateNotPassed for 60s: not yet after: TimedWait: not due yet ams: ClusterUpdatingSucceeded 60s ago " +
		"prod: its turn has not come ber: not started"
	if got := described(func(s *description) { s.run(run) }); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
