package status

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// What a run waits for has the reason of KubeFleet's condition; the stage whose turn it is has the clusters that have failed.
func TestUpdateRuns(t *testing.T) {
	now := time.Unix(1000, 0)
	approval := []api.StageTask{{Type: api.ApprovalTask}}
	on := func(name string, available bool, failure string) *plan.OnCluster {
		return &plan.OnCluster{Failure: failure, Binding: placement.Binding{Cluster: name, Assigned: placement.Revision{Hash: "h"}, Index: 3, WasAvailable: available}}
	}
	for name, test := range map[string]struct {
		change  func(r *placement.Run, p *plan.Placement)
		reason  string
		asks    string
		updated int
	}{
		"it makes progress":            {func(*placement.Run, *plan.Placement) {}, "UpdateRunProgressing", "", 1},
		"it has not started":           {func(r *placement.Run, _ *plan.Placement) { r.Started = time.Time{} }, "UpdateRunInitializedSuccessfully", "", 1},
		"its clusters are in no stage": {func(r *placement.Run, _ *plan.Placement) { r.Failed = "why" }, "UpdateRunInitializedFailed", "", 1},
		"a newer one":                  {func(r *placement.Run, _ *plan.Placement) { r.SupersededBy = "web-2" }, "UpdateRunSuperseded", "", 1},
		"it is stopped":                {func(_ *placement.Run, p *plan.Placement) { p.RunHalted = "it is stopped" }, "UpdateRunStopped", "", 1},
		"a failed update":              {func(_ *placement.Run, p *plan.Placement) { p.Clusters[1].Failure = "no image" }, "UpdateRunStuck", "", 1},
		"an approval before":           {func(r *placement.Run, _ *plan.Placement) { r.Stages[0].BeforeStageTasks = approval }, "UpdateRunWaiting", "canary", 1},
		"an approval after": {func(r *placement.Run, _ *plan.Placement) {
			r.Stages[0].AfterStageTasks, r.Stages[0].Updated = approval, now
		}, "UpdateRunWaiting", "canary", 1},
		"a timed wait": {func(r *placement.Run, _ *plan.Placement) { r.Stages[0].Updated = now }, "UpdateRunWaiting", "", 1},
		"it has finished": {func(r *placement.Run, _ *plan.Placement) {
			r.Finished, r.Stages[0].Updated, r.Stages[0].Finished = now, now, now
		}, "UpdateRunSucceeded", "", 2},
	} {
		p := &plan.Placement{Clusters: []*plan.OnCluster{on("a", true, ""), on("b", false, "")}, Record: ledger.Placement{Index: 4}}
		p.Record.Runs = []placement.Run{{Name: "web-1", Index: 3, Started: now, Stages: []placement.RunStage{{StageConfig: api.StageConfig{Name: "canary"}, Clusters: []string{"a", "b", "gone"}}}}}
		test.change(&p.Record.Runs[0], p)
		got := updateRun(p)
		if got.Reason != test.reason || got.Asks != test.asks || got.Message == "" || got.Stages[0].Updated != test.updated || got.Stages[0].Clusters != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := updateRun(&plan.Placement{}); got != nil {
		t.Errorf("a placement without a run: %+v", got)
	}
}
