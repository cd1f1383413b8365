package reconciler

import (
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Only what a stage of the run that is under way waits for can be approved.
func TestApprovals(t *testing.T) {
	c := newOrdered(t)
	web := api.PlacementKey{Name: "web"}
	approval := []api.StageTask{{Type: api.ApprovalTask}}
	stage := func(name string, before, after []api.StageTask) placement.RunStage {
		return placement.RunStage{StageConfig: api.StageConfig{Name: name, BeforeStageTasks: before, AfterStageTasks: after}}
	}
	set := func(change func(r *placement.Run)) {
		record := ledger.Placement{}
		if old := c.ledger.Placement(web); old != nil {
			record = *old
		}
		run := placement.Run{Name: "web-1", Started: c.now, Stages: []placement.RunStage{stage("canary", approval, approval), stage("all", nil, nil)}}
		change(&run)
		record.Runs = []placement.Run{run}
		c.ledger.SetPlacement(web, record)
	}
	fresh := func(*placement.Run) {}
	begun := func(r *placement.Run) { r.Stages[0].ApprovedBefore = c.now }
	updated := func(r *placement.Run) { begun(r); r.Stages[0].Updated = c.now }
	done := func(r *placement.Run) { updated(r); r.Stages[0].ApprovedAfter, r.Stages[0].Finished = c.now, c.now }
	for _, test := range []struct {
		name    string
		run     func(*placement.Run)
		order   Order
		want    string
		request string
	}{
		{"its beginning", fresh, Order{Stage: "canary", By: "ada", Reason: "INC-1"}, "the beginning of stage canary of update run web-1 of crp/web is approved", "web-1-before-canary"},
		{"its end", updated, Order{Stage: "canary", By: "ada"}, "the end of stage canary of update run web-1 of crp/web is approved", "web-1-after-canary"},
		{"its end, too early", fresh, Order{Stage: "canary", After: true}, "error: the clusters of stage canary are not updated yet; its beginning waits for an approval: --before", ""},
		{"its beginning, too late", updated, Order{Stage: "canary", Before: true}, "error: stage canary has begun; its end waits for an approval: --after", ""},
		{"nothing is missing now", begun, Order{Stage: "canary"}, "error: stage canary of update run web-1 waits for no approval now: gitfleet describe crp/web says what for", ""},
		{"a stage before it", fresh, Order{Stage: "all"}, "error: stage all of update run web-1 has not begun: the stages before it are not finished", ""},
		{"it has finished", done, Order{Stage: "canary"}, "error: stage canary of update run web-1 is finished", ""},
		{"no such stage", fresh, Order{Stage: "canari"}, `error: update run web-1 has no stage "canari"; it has canary, all`, ""},
		{"no stage", fresh, Order{}, "error: --stage is required", ""},
		{"both", fresh, Order{Stage: "canary", Before: true, After: true}, "error: --before and --after exclude each other", ""},
		{"twice", func(r *placement.Run) {
			r.Approvals = []placement.Approval{{Request: "web-1-before-canary", By: "ben"}}
		}, Order{Stage: "canary"}, "error: stage canary of update run web-1 is approved already, by ben", "web-1-before-canary"},
		{"twice, while clusters are updated", func(r *placement.Run) {
			begun(r)
			r.Approvals = []placement.Approval{{Request: "web-1-before-canary", By: "ben"}}
		}, Order{Stage: "canary"}, "error: the beginning of stage canary of update run web-1 is approved already, by ben, and its end is not asked for yet", "web-1-before-canary"},
		{"twice, while it also waits for a time", func(r *placement.Run) {
			updated(r)
			r.Stages[0].ApprovedAfter = c.now
			r.Approvals = []placement.Approval{{Request: "web-1-after-canary", By: "ben"}}
		}, Order{Stage: "canary"}, "error: the end of stage canary of update run web-1 is approved already, by ben; gitfleet describe crp/web says what else it waits for", "web-1-after-canary"},
		{"the run has finished", func(r *placement.Run) { r.Finished = c.now }, Order{Stage: "canary"}, "error: crp/web has no update run that is under way", ""},
		{"another run is under way", fresh, Order{Stage: "canary", Run: "web-0"}, "error: update run web-0 of crp/web is not under way any more: update run web-1 is", ""},
		{"that run", fresh, Order{Stage: "canary", Run: "web-1"}, "the beginning of stage canary of update run web-1 of crp/web is approved", "web-1-before-canary"},
		{"it is rejected", fresh, Order{Stage: "canary", By: "ada", Reason: "slow", Reject: true}, "the beginning of stage canary of update run web-1 of crp/web is rejected", ""},
		{"it was rejected", func(r *placement.Run) { r.Rejected = &placement.Approval{By: "ada", Reason: "slow"} }, Order{Stage: "canary"}, "error: update run web-1 of crp/web was rejected by ada: slow; commit other content or another run, or let it go on with gitfleet resume crp/web --failed-content", ""},
		{"it is stopped", func(r *placement.Run) { r.Halted = "it is stopped (spec.state: Stop)" }, Order{Stage: "canary"}, "error: update run web-1 of crp/web cannot go on: it is stopped (spec.state: Stop)", ""},
		{"on a cluster", fresh, Order{Stage: "canary", Cluster: "east"}, "error: a stage of a placement is approved: name crp/NAME or rp/NAMESPACE/NAME, without --cluster", ""},
	} {
		set(test.run)
		test.order.Subject = "crp/web"
		if got := ordered(c.orders().approve(test.order)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
		var requests []string
		for _, a := range c.ledger.Placement(web).Runs[0].Approvals {
			requests = append(requests, a.Request)
		}
		if want := slices.DeleteFunc([]string{test.request}, func(r string) bool { return r == "" }); !slices.Equal(requests, want) {
			t.Errorf("%s: approved are %v, want %v", test.name, requests, want)
		}
	}
}

// If the configuration takes approvals from Git only, everything else is refused with what to commit. A rejection is not.
func TestApprovalsInGit(t *testing.T) {
	c := newOrdered(t)
	c.cfg.ApprovalsInGit = true
	approval := []api.StageTask{{Type: api.ApprovalTask}}
	web := api.PlacementKey{Name: "web"}
	c.ledger.SetPlacement(web, ledger.Placement{Runs: []placement.Run{{Name: "web-1", Started: c.now, Stages: []placement.RunStage{
		{StageConfig: api.StageConfig{Name: "canary", BeforeStageTasks: approval}},
	}}}})
	for _, test := range []struct {
		order Order
		want  string
	}{
		{Order{Stage: "canary", By: "ada"}, "error: stages are approved by commits only, as rollout.approvals of the configuration says: commit the ClusterApprovalRequest web-1-before-canary with parentStageRollout: web-1 and targetStage: canary"},
		{Order{Stage: "all", By: "ada"}, `error: update run web-1 has no stage "all"; it has canary`},
		{Order{Stage: "canary", By: "ada", Reject: true}, "the beginning of stage canary of update run web-1 of crp/web is rejected"},
	} {
		test.order.Subject = "crp/web"
		if got := ordered(c.orders().approve(test.order)); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		if got := c.ledger.Placement(web).Runs[0].Approvals; len(got) > 0 {
			t.Errorf("approved: %+v", got)
		}
	}
}

// Content that was rolled back, or whose run was rejected, runs again if a user says so, with a reason.
func TestFailedContentRunsAgain(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	for name, test := range map[string]struct {
		runs   []placement.Run
		reason string
		want   string
		left   int
	}{
		"it was rolled back":       {[]placement.Run{{Name: "web-1", Automatic: true}, {Name: "web-2", Automatic: true, RolledBack: "no image", SupersededBy: "web-1"}}, "the registry was down", "the content of update run web-2 of crp/web runs again", 1},
		"it was rejected":          {[]placement.Run{{Name: "web-1", Started: time.Unix(1, 0), Rejected: &placement.Approval{By: "ada"}}}, "a mistake", "the content of update run web-1 of crp/web runs again", 1},
		"a run that was committed": {[]placement.Run{{Name: "web-1", RolledBack: "no image"}}, "why not", "error: no update run of crp/web was rejected or rolled back by itself, or has a gate that failed; commit a run to bring its content again", 1},
		"a gate has failed":        {[]placement.Run{{Name: "web-1", Started: time.Unix(1, 0), Stages: []placement.RunStage{{Gates: []placement.RunGate{{Name: "errors", Failed: time.Unix(2, 0)}}}}}}, "a flaky probe", "the content of update run web-1 of crp/web runs again", 1},
		"no reason":                {nil, "", "error: --reason is required: why may the content run again although it failed?", 0},
	} {
		c := newOrdered(t)
		c.ledger.SetPlacement(web, ledger.Placement{Runs: test.runs})
		o := Order{Subject: "crp/web", FailedContent: true, Reason: test.reason, By: "ada"}
		if got := ordered(c.orders().resume(o)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		runs := c.ledger.Placement(web).Runs
		if len(runs) != test.left || test.left > 0 && (runs[0].Rejected != nil || len(runs[0].Stages) > 0 && runs[0].Stages[0].Gates[0].HasFailed()) {
			t.Errorf("%s: %+v", name, runs)
		}
	}
}
