package proposal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
	"github.com/gitfleet/gitfleet/test/world"
)

const contentFile = "configmap-web-config-0.yaml"

// newFailed returns a fleet whose content has failed. undone is what the repository answers.
func newFailed(t *testing.T, undone *gitsource.Undone, err error) *drifting {
	t.Helper()
	d := newDrifting(t, 2, 1)
	d.report.Drifts = nil
	d.fail("run-2")
	d.follower.tracker.cfg.Undo = func(context.Context, string, string, string) (*gitsource.Undone, error) { return undone, err }
	return d
}

// fail makes the report say that the content has failed in a run.
func (d *drifting) fail(run string) {
	d.report.Details[0].FailedContent = &updaterun.FailedContent{Run: run, Commit: "2222222222", Back: "run-1", BackCommit: "1111111111", At: now, Reason: "the update failed on member-000"}
}

func undoing(t *testing.T) *gitsource.Undone {
	before := world.Files(t, "configmap web/config-0 before")[contentFile].Data
	return &gitsource.Undone{Files: map[string][]byte{contentFile: before, "README.md": []byte("other\n")}}
}

// Content that has failed is offered at once to be undone, in one pull request also after a restart, which has only the files of
// the content. It is closed when the content does not count as failed any more.
func TestFailedContentIsOfferedToBeUndone(t *testing.T) {
	d := newFailed(t, undoing(t), nil)
	d.step(t, time.Second)
	if len(d.forge.Pulls) != 1 {
		t.Fatalf("%d pull requests", len(d.forge.Pulls))
	}
	pr := d.forge.Pulls[0]
	commit := d.forge.branches[pr.Branch]
	if !strings.HasPrefix(pr.Branch, rollbackPrefix) || len(commit.Files) != 1 || commit.Files[contentFile] == nil {
		t.Errorf("branch %s has %v", pr.Branch, commit.Files)
	}
	if !slices.Contains(pr.Labels, rollback.Label) || !strings.Contains(pr.Body, "the update failed on member-000") || !strings.Contains(commit.Message, "Gitfleet-Failed-Content: ") {
		t.Errorf("labels %v, message %q and body\n%s", pr.Labels, commit.Message, pr.Body)
	}
	undo := d.follower.tracker.cfg.Undo
	requests := d.forge.requests
	for range 6 {
		d.step(t, 10*time.Second)
	}
	if n := d.forge.requests - requests; n > 2 {
		t.Errorf("%d requests in an idle minute", n)
	}
	report, load := d.report, d.collector.load
	d.restart(10)
	d.report, d.collector.load, d.follower.tracker.cfg.Undo = report, load, undo
	d.follower.tracker.cfg.Files = d.readFiles
	for range 6 {
		d.step(t, 10*time.Second)
	}
	if len(d.forge.Pulls) != 1 || pr.State != forge.Open {
		t.Fatalf("after a restart: %+v", d.forge.Pulls)
	}
	d.report.Details[0].FailedContent = nil
	for range 12 {
		d.step(t, 10*time.Second)
	}
	if pr.State != forge.Closed || len(d.forge.branches) != 0 || !strings.Contains(strings.Join(d.forge.comments, "\n"), "another one by now, or runs again") {
		t.Errorf("it is %s, with branches %v and comments %q", pr.State, d.forge.branches, d.forge.comments)
	}
}

// What people decide stays: it is not offered again once the pull request is closed, and another failure is.
func TestARejectedRollbackIsNotOfferedAgain(t *testing.T) {
	d := newFailed(t, undoing(t), nil)
	d.step(t, time.Second)
	d.forge.End(1, forge.Closed)
	for range 12 {
		d.step(t, 10*time.Second)
	}
	if len(d.forge.Pulls) != 1 {
		t.Fatalf("%d pull requests", len(d.forge.Pulls))
	}
	d.fail("run-3")
	d.step(t, 10*time.Second)
	if len(d.forge.Pulls) != 2 {
		t.Errorf("%d pull requests after another failure", len(d.forge.Pulls))
	}
}

// An edit that is not possible is an issue that says why; a repository that cannot be read is asked again.
func TestAnIssueIsOpenedIfContentCannotBeUndone(t *testing.T) {
	d := newFailed(t, &gitsource.Undone{Conflicts: []string{contentFile}}, nil)
	d.step(t, time.Second)
	if len(d.forge.Pulls) != 0 || len(d.forge.Issues) != 1 {
		t.Fatalf("%d pull requests and %d issues", len(d.forge.Pulls), len(d.forge.Issues))
	}
	if i := d.forge.Issues[0]; !slices.Contains(i.Labels, issueLabel) || !strings.Contains(i.Body, "the same lines of "+contentFile) {
		t.Errorf("the issue has the labels %v and says\n%s", i.Labels, i.Body)
	}
	d.follower.tracker.cfg.Undo = func(context.Context, string, string, string) (*gitsource.Undone, error) {
		return nil, errors.New("disk error")
	}
	d.fail("run-3")
	d.step(t, time.Second)
	if len(d.forge.Issues) != 1 || len(d.follower.known.undecided()) != 1 {
		t.Errorf("%d issues, %d undecided", len(d.forge.Issues), len(d.follower.known.undecided()))
	}
	undone := undoing(t)
	d.follower.tracker.cfg.Undo = func(context.Context, string, string, string) (*gitsource.Undone, error) { return undone, nil }
	d.step(t, time.Second)
	if len(d.forge.Pulls) != 1 {
		t.Errorf("%d pull requests once it can be read", len(d.forge.Pulls))
	}
}
