package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A world has commits c3, c2 and c1, each the parent of the one before, and a run with the content of c3 that waits for an approval
// after its stage canary.
type world struct {
	// contents are those of the placement, by commit; others than c1 have the next pull request.
	contents map[string]string
	// approvals maps a commit to the approving reviewers of its pull request. A commit without a pull request has no entry.
	approvals map[string][]string
	runs      []placement.Run
	byReview  []string
	refuse    error
	fail      error
	decided   []Decision
	requests  int
}

func newWorld() *world {
	w := &world{
		contents: map[string]string{"c3": "new", "c2": "old", "c1": "old"}, byReview: []string{"canary"},
		approvals: map[string][]string{"c3": {"ben"}},
	}
	stage := placement.RunStage{StageConfig: api.StageConfig{Name: "canary", AfterStageTasks: []api.StageTask{{Type: api.ApprovalTask}}}, Updated: noon}
	w.runs = []placement.Run{
		{Name: "web-1", Content: placement.Revision{Commit: "c1", Hash: "old"}, Started: noon.Add(-time.Hour), Finished: noon.Add(-time.Hour)},
		{Name: "web-3", Content: placement.Revision{Commit: "c3", Hash: "new"}, Initialized: noon, Started: noon, Stages: []placement.RunStage{stage}},
	}
	return w
}

func (w *world) MergedPullRequest(_ context.Context, _, commit string) (*forge.PullRequest, error) {
	w.requests++
	if _, merged := w.approvals[commit]; !merged {
		return nil, w.fail
	}
	return &forge.PullRequest{Thread: forge.Thread{Number: 7, URL: "https://git.example.com/pulls/" + commit, State: forge.Merged}, MergeCommit: commit, AuthorID: 1}, w.fail
}

func (w *world) Approvals(_ context.Context, pr forge.PullRequest) (out []forge.Remark, err error) {
	w.requests++
	for _, name := range w.approvals[pr.MergeCommit] {
		out = append(out, forge.Remark{Author: name})
	}
	return out, nil
}

func (w *world) approver(t *testing.T) *Approver {
	a := New(Config{
		Forge: w, Base: "main", Interval: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
		Approve: func(_ context.Context, d Decision) (string, error) {
			w.decided = append(w.decided, d)
			return "the end of stage " + d.Stage + " of update run " + d.Run + " is approved", w.refuse
		},
		Parent: func(_ context.Context, commit string) (string, error) {
			return map[string]string{"c3": "c2", "c2": "c1"}[commit], nil
		},
		Content: func(_ context.Context, commit string, _ api.PlacementKey) (string, bool, error) {
			content, known := w.contents[commit]
			return content, known, nil
		},
	})
	a.Observe(w.report(t))
	return a
}

// report is the report of the placement with its runs.
func (w *world) report(t *testing.T) *status.Report {
	t.Helper()
	p := &plan.Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{Key: api.PlacementKey{Name: "web"}}, Record: ledger.Placement{Runs: w.runs}}
	p.Runs = []*hub.StagedRun{{Name: "web-3", ByReview: w.byReview}}
	last := w.runs[len(w.runs)-1]
	p.Rollout.Run = &last
	return status.Build(status.Input{Plan: &plan.Plan{Placements: sharedlist.Of(p)}, InForce: &hub.Snapshot{}, Ledger: ledger.New(), Now: noon})
}

// A stage is approved by an approving review of the pull request that has made the content of the run, if the strategy says so,
// and if nothing else has changed the content since the last run that has finished.
func TestReviews(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"one change": {func(*world) {}, "canary of web-3 by ben (https://git.example.com/pulls/c3)"},
		"two reviewers": {func(w *world) {
			w.approvals["c3"] = []string{"ben", "carla"}
		}, "canary of web-3 by ben, carla (https://git.example.com/pulls/c3)"},
		"the strategy names other stages":     {func(w *world) { w.byReview = []string{"production"} }, ""},
		"nobody has approved":                 {func(w *world) { w.approvals["c3"] = nil }, ""},
		"no pull request":                     {func(w *world) { w.approvals = nil }, ""},
		"another change, without one":         {func(w *world) { w.contents["c2"] = "other" }, ""},
		"another change that nobody approved": {func(w *world) { w.contents["c2"], w.approvals["c2"] = "other", nil }, ""},
		"another change that is approved": {func(w *world) {
			w.contents["c2"], w.approvals["c2"] = "other", []string{"carla"}
		}, "canary of web-3 by ben (https://git.example.com/pulls/c3)"},
		"a change that is undone by this one": {func(w *world) { w.runs[0].Content.Hash, w.contents["c1"] = "older", "older" }, ""},
		"the first content": {func(w *world) {
			w.runs, w.contents = w.runs[1:], map[string]string{"c3": "new"}
		}, "canary of web-3 by ben (https://git.example.com/pulls/c3)"},
		"it is rejected":     {func(w *world) { w.runs[1].Halted = "it was rejected" }, ""},
		"it is not its turn": {func(w *world) { w.runs[1].Stages[0].Updated = time.Time{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.change(w)
			w.approver(t).pass(t.Context(), noon)
			got := ""
			for _, d := range w.decided {
				got += fmt.Sprintf("%s of %s by %s", d.Stage, d.Run, d.By)
				if d.Before || !d.After || d.Reject || d.Placement.Name != "web" {
					t.Errorf("decided %+v", d)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The forge is asked about nothing unless a review could approve something, and after errors with a backoff.
func TestTheForgeIsAskedLittle(t *testing.T) {
	w := newWorld()
	w.byReview = nil
	w.approver(t).pass(t.Context(), noon)
	if w.requests != 0 {
		t.Errorf("%d requests without reviews that count", w.requests)
	}
	w = newWorld()
	w.fail = errors.New("the forge is down")
	a := w.approver(t)
	a.pass(t.Context(), noon)
	a.pass(t.Context(), noon.Add(time.Second))
	if w.requests != 1 || len(a.Problems()) != 1 || !strings.Contains(a.Problems()[0], "reviews approve no stage of an update run") {
		t.Errorf("%d requests, problems %q", w.requests, a.Problems())
	}
	w.fail = nil
	a.pass(t.Context(), noon.Add(time.Hour))
	if len(w.decided) != 1 || len(a.Problems()) != 0 {
		t.Errorf("decided %v, problems %q", w.decided, a.Problems())
	}
}

// A comment approves the stage of the run with the content of its pull request; what cannot be approved is refused with the reason.
func TestComments(t *testing.T) {
	ben := forge.Remark{Author: "ben", AuthorID: 2}
	for name, test := range map[string]struct {
		change func(w *world, pr *forge.PullRequest)
		by     forge.Remark
		args   string
		want   string
	}{
		"approval":  {nil, ben, "--stage canary", "`the end of stage canary of update run web-3 is approved`."},
		"a reason":  {nil, ben, `--stage=canary --after --reason "no errors for an hour"`, "`the end of stage canary of update run web-3 is approved`."},
		"no stage":  {nil, ben, "", "refused: --stage NAME is required"},
		"a mistake": {nil, ben, "canary", "refused: canary is unknown; write --stage NAME, and as you like --before, --after, --reject, and at the end --reason TEXT"},
		"not merged": {func(_ *world, pr *forge.PullRequest) { pr.State = forge.Open }, ben, "--stage canary",
			"refused: this pull request is not merged, so that no update run has its content"},
		"by its author": {nil, forge.Remark{Author: "anna", AuthorID: 1}, "--stage canary", "refused: the author of a change does not approve it here: somebody else has to"},
		"another pull request": {func(_ *world, pr *forge.PullRequest) { pr.MergeCommit = "c9" }, ben, "--stage canary",
			"refused: no update run has the content of commit c9"},
		"superseded": {func(w *world, _ *forge.PullRequest) { w.runs[1].SupersededBy = "web-4" }, ben, "--stage canary",
			"refused: update run web-3 of crp/web, which has this content, is not under way any more: update run web-4 has taken its place"},
		"it has ended": {func(_ *world, pr *forge.PullRequest) { pr.MergeCommit = "c1" }, ben, "--stage canary",
			"refused: update run web-1 of crp/web, which has this content, is not under way"},
		"the run refuses": {func(w *world, _ *forge.PullRequest) { w.refuse = refuse("stage canary is finished") }, ben, "--stage canary",
			"Nothing was done: `stage canary is finished`"},
	} {
		t.Run(name, func(t *testing.T) {
			w, pr := newWorld(), forge.PullRequest{Thread: forge.Thread{State: forge.Merged}, MergeCommit: "c3", AuthorID: 1}
			if test.change != nil {
				test.change(w, &pr)
			}
			got, err := w.approver(t).Comment(t.Context(), pr, test.by, "ben (url)", test.args)
			if refused, ok := errors.AsType[*RefusedError](err); ok {
				got = "refused: " + refused.Error()
			} else if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if name == "a reason" && (w.decided[0].Reason != "no errors for an hour" || w.decided[0].By != "ben (url)" || !w.decided[0].After) {
				t.Errorf("decided %+v", w.decided)
			}
		})
	}
}
