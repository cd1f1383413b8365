// Package approval approves stages of update runs for people who have reviewed or commented on the pull request that the run
// came from.
//
// An [Approver] checks the runs that wait for an approval. If the strategy names the stage, an approving review of the merged
// pull request counts as the approval; the forge decides which reviews count. A review covers one change: a run may contain
// several commits since the last finished run, and the pull request of each of them must be approved. A comment is a command of a user,
// which [Approver.Comment] executes at once. The Approver stores nothing: approvals are recorded in the ledger, as those of
// gitfleet approve are.
package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/updaterun"
)

// A Forge is one repository on a forge.
type Forge interface {
	MergedPullRequest(ctx context.Context, base, commit string) (*forge.PullRequest, error)
	Approvals(ctx context.Context, pr forge.PullRequest) ([]forge.Remark, error)
}

// A Decision is an approval or a rejection of a stage.
type Decision struct {
	Placement api.PlacementKey
	Run       string
	Stage     string
	// Before and After say which approval is meant; the one that is asked for if neither is set.
	Before, After bool
	Reject        bool
	By, Reason    string
}

// A RefusedError says why a decision is refused.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Config configures an Approver.
type Config struct {
	Forge Forge
	// Base is the tracked branch.
	Base string
	// Approve carries out a decision. The error is a [*RefusedError] if that is not possible, which says why.
	Approve func(ctx context.Context, d Decision) (answer string, err error)
	// Parent returns the first parent of a commit; empty if it has none.
	Parent func(ctx context.Context, commit string) (string, error)
	// Content identifies the content of a placement at a commit; known is false if the commit does not have the placement.
	Content func(ctx context.Context, commit string, key api.PlacementKey) (fingerprint string, known bool, err error)
	// Interval is the time between two looks at reviews.
	Interval time.Duration
	Log      *slog.Logger
}

// An Approver approves stages.
type Approver struct {
	cfg      Config
	loop     poll.Loop
	report   atomic.Pointer[status.Report]
	problems poll.Problems

	// The fields below belong to Run's goroutine.

	// changes are the commits that have made the content of each run, and refused says why no review approves it.
	changes map[runKey][]string
	refused map[runKey]string
	retry   poll.Backoff
}

// A runKey identifies a run of a placement.
type runKey struct{ placement, run string }

// New returns an Approver that does nothing until it runs.
func New(cfg Config) *Approver {
	return &Approver{cfg: cfg, loop: poll.NewLoop(), changes: map[runKey][]string{}, refused: map[runKey]string{}}
}

// Observe takes a new report. It never blocks. For a nil Approver it does nothing.
func (a *Approver) Observe(r *status.Report) {
	if a != nil {
		a.report.Store(r)
	}
}

// Wake causes a look at reviews soon. It never blocks, and any goroutine may call it. On a nil Approver it does nothing.
func (a *Approver) Wake() {
	if a != nil {
		a.loop.Wake()
	}
}

// Problems lists what cannot be done on the forge, since when and why. Any goroutine may call it. For a nil Approver it is empty.
func (a *Approver) Problems() []string {
	if a == nil {
		return nil
	}
	return a.problems.List()
}

// Run works until ctx is done. An error of the forge does not end it: it is logged, and the request is tried again.
func (a *Approver) Run(ctx context.Context) error {
	defer a.problems.Set(nil)
	a.loop.Run(ctx, a.cfg.Interval, a.pass)
	return nil
}

// pass approves the stages that reviews approve, and returns how long the next pass has to wait.
func (a *Approver) pass(ctx context.Context, now time.Time) time.Duration {
	r := a.report.Load()
	if r == nil || a.retry.Wait(now) > 0 {
		return a.retry.Wait(now)
	}
	a.retry.Record(ctx, a.approveReviewed(ctx, r), now, a.cfg.Log, "reviews are not read", "reviews are read again")
	var problems []string
	if a.retry.Failures() > 0 {
		problems = append(problems, "reviews approve no stage of an update run "+a.retry.String())
	}
	a.problems.Set(problems)
	return a.retry.Wait(now)
}

// approveReviewed looks at all runs that wait for an approval which reviews may give.
func (a *Approver) approveReviewed(ctx context.Context, r *status.Report) error {
	asked := map[runKey]bool{}
	seen := &reviews{Approver: a, of: map[string]*review{}}
	var failed []error
	for _, d := range r.Details {
		run := d.UpdateRun
		key, err := api.ParsePlacement(d.Placement)
		if run == nil || run.ApprovalStage == "" || !run.ByReview || err != nil {
			continue
		}
		k := runKey{d.Placement, run.Name}
		asked[k] = true
		if err := a.approveStage(ctx, seen, key, k, run); err != nil {
			failed = append(failed, err)
		}
	}
	for k := range a.changes {
		if !asked[k] {
			delete(a.changes, k)
			delete(a.refused, k)
		}
	}
	return errors.Join(failed...)
}

// approveStage approves the stage that a run asks for, if all changes that have made its content are approved.
func (a *Approver) approveStage(ctx context.Context, seen *reviews, key api.PlacementKey, k runKey, run *updaterun.Run) error {
	newest, err := seen.read(ctx, run.Commit)
	if err != nil || newest == nil || len(newest.by) == 0 {
		return err
	}
	changes, known := a.changes[k]
	if !known {
		if changes, err = a.changesOf(ctx, key, run); err != nil {
			return fmt.Errorf("find the changes that have made the content of update run %s of %s: %w", run.Name, key, err)
		}
		a.changes[k] = changes
	}
	if changes == nil {
		a.refuseReviews(k, fmt.Sprintf("it has the changes of more than %d commits", maxChanges))
		return nil
	}
	for _, commit := range changes {
		one, err := seen.read(ctx, commit)
		switch {
		case err != nil:
			return err
		case one == nil:
			a.refuseReviews(k, fmt.Sprintf("it also has the change of commit %.8s, which no pull request has brought", commit))
			return nil
		case len(one.by) == 0:
			a.refuseReviews(k, "it also has the change of "+one.pr.URL+", which nobody has approved")
			return nil
		}
	}
	d := Decision{
		Placement: key, Run: run.Name, Stage: run.ApprovalStage, Before: run.Before, After: !run.Before,
		By: fmt.Sprintf("%s (%s)", strings.Join(newest.by, ", "), newest.pr.URL), Reason: "approving review of the pull request",
	}
	_, err = a.cfg.Approve(ctx, d)
	if refused, ok := errors.AsType[*RefusedError](err); ok { // it was approved in another way, or has ended
		a.cfg.Log.Info("a review approves nothing", "placement", k.placement, "run", run.Name, "stage", run.ApprovalStage, "err", refused)
		return nil
	}
	return err
}

// refuseReviews logs once why no review approves a run.
func (a *Approver) refuseReviews(k runKey, why string) {
	if a.refused[k] != why {
		a.refused[k] = why
		a.cfg.Log.Warn("the review of a pull request does not approve an update run", "placement", k.placement, "run", k.run, "reason", why)
	}
}

// maxChanges is the maximum number of commits that are looked at for the content of a run.
const maxChanges = 20

// changesOf returns the commits, the newest first, each of which has changed the content of a placement since the last run that
// has finished; nil if there are too many. The first is that of the run.
func (a *Approver) changesOf(ctx context.Context, key api.PlacementKey, run *updaterun.Run) ([]string, error) {
	commit := run.Commit
	now, _, err := a.cfg.Content(ctx, commit, key)
	if err != nil {
		return nil, err
	}
	changes := []string{commit}
	for range maxChanges {
		parent, err := a.cfg.Parent(ctx, commit)
		if err != nil || parent == "" {
			return changes, err
		}
		before, known, err := a.cfg.Content(ctx, parent, key)
		if err != nil {
			return nil, err
		}
		if before != now && !slices.Contains(changes, commit) {
			changes = append(changes, commit)
		}
		if !known || before == run.Proven {
			return changes, nil
		}
		commit, now = parent, before
	}
	return nil, nil
}

// A review is a merged pull request with those who approve it.
type review struct {
	pr forge.PullRequest
	by []string
}

// reviews are those that one pass has read, by commit.
type reviews struct {
	*Approver
	of map[string]*review
}

// read returns the pull request that has made a commit; nil if none has.
func (s *reviews) read(ctx context.Context, commit string) (*review, error) {
	if known, read := s.of[commit]; read {
		return known, nil
	}
	pr, err := s.cfg.Forge.MergedPullRequest(ctx, s.cfg.Base, commit)
	if err != nil {
		return nil, err
	}
	if pr == nil {
		s.of[commit] = nil
		return nil, nil
	}
	list, err := s.cfg.Forge.Approvals(ctx, *pr)
	if err != nil {
		return nil, err
	}
	out := &review{pr: *pr}
	for _, r := range list {
		out.by = append(out.by, r.Author)
	}
	s.of[commit] = out
	return out, nil
}

// Follows reports whether there is a run that comments may be about.
func (a *Approver) Follows() bool {
	r := a.report.Load()
	return r != nil && slices.ContainsFunc(r.Details, func(d *status.Detail) bool { return d.UpdateRun != nil && d.UpdateRun.Finished.IsZero() })
}

// Comment executes the command to approve a stage that a user has written to a pull request: its arguments are those of
// gitfleet approve, without the placement.
func (a *Approver) Comment(ctx context.Context, pr forge.PullRequest, author forge.Remark, by, args string) (answer string, err error) {
	d, err := parse(args)
	if err != nil {
		return "", err
	}
	d.By = by
	switch r := a.report.Load(); {
	case pr.State != forge.Merged:
		return "", refuse("this pull request is not merged, so that no update run has its content")
	case author.AuthorID == pr.AuthorID && !d.Reject:
		return "", refuse("the author of a change does not approve it here: somebody else has to")
	case r == nil:
		return "", refuse("the update runs are not known yet; try again in a moment")
	default:
		return a.decide(ctx, r, pr.MergeCommit, d)
	}
}

// decide carries out a decision about all runs that are under way with the content of a commit.
func (a *Approver) decide(ctx context.Context, r *status.Report, commit string, d Decision) (string, error) {
	var answers, ended []string
	done := false
	for p := range r.Plan().Placements.Values() {
		for i := range p.Record.Runs {
			run := &p.Record.Runs[i]
			switch {
			case run.Content.Commit != commit:
				continue
			case run.RolledBack != "" || run.SupersededBy != "":
				ended = append(ended, fmt.Sprintf("update run %s of %s, which has this content, is not under way any more: update run %s has taken its place", run.Name, p.Key, run.SupersededBy))
				continue
			case !run.Active():
				ended = append(ended, fmt.Sprintf("update run %s of %s, which has this content, is not under way", run.Name, p.Key))
				continue
			}
			d.Placement, d.Run = p.Key, run.Name
			text, err := a.cfg.Approve(ctx, d)
			refused, _ := errors.AsType[*RefusedError](err)
			switch {
			case refused != nil:
				text = "nothing was done: " + markdown.Code(refused.Why)
			case err != nil:
				return "", err
			default:
				done, text = true, markdown.Code(text)
			}
			answers = append(answers, text)
		}
	}
	switch {
	case done || len(answers) > 1:
		return strings.Join(answers, "; ") + ".", nil
	case len(answers) == 1:
		return "N" + strings.TrimPrefix(answers[0], "n"), nil
	case len(ended) > 0:
		return "", refuse("%s", strings.Join(ended, "; "))
	}
	return "", refuse("no update run has the content of commit %.8s", commit)
}

// parse reads the arguments of a command. The reason is the last one, with all that follows.
func parse(args string) (d Decision, err error) {
	args, reason, _ := strings.Cut(args, "--reason")
	d.Reason = strings.Trim(reason, ` ="'`)
	words := strings.Fields(strings.ReplaceAll(args, "--stage=", "--stage "))
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "--stage":
			if i++; i < len(words) {
				d.Stage = words[i]
			}
		case "--before":
			d.Before = true
		case "--after":
			d.After = true
		case "--reject":
			d.Reject = true
		default:
			return d, refuse("%s is unknown; write --stage NAME, and as you like --before, --after, --reject, and at the end --reason TEXT", words[i])
		}
	}
	if d.Stage == "" {
		return d, refuse("--stage NAME is required")
	}
	return d, nil
}
