// Package review shows on a forge what commits do to the fleet.
//
// A [Reviewer] plans each open pull request as if it were merged, and writes the plan into one
// comment and a commit status. It also shows the progress of the rollout on the commits of the
// base. The state of the clusters is that of the loop's report. If it is configured, some
// members are asked by dry runs what they would do; nothing is applied.
package review

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Forge is one repository on a forge, accessed as one user.
type Forge interface {
	// ForgetList makes the next ListOpen request a new list.
	ForgetList()
	// ListOpen lists the open pull requests to a base branch, also those from forks.
	ListOpen(ctx context.Context, base string) ([]forge.PullRequest, error)
	// PullRequest returns the pull request with a number.
	PullRequest(ctx context.Context, number int64) (forge.PullRequest, error)
	// FindComment returns the first comment of that user with a marker; nil if there is none.
	FindComment(ctx context.Context, number int64, marker string) (*forge.Comment, error)
	AddComment(ctx context.Context, number int64, body string) (forge.Comment, error)
	EditComment(ctx context.Context, number, id int64, body string) error
	Edit(ctx context.Context, t forge.Thread, e forge.Edit) error
	// EnsureLabels creates the labels that the repository does not have.
	EnsureLabels(ctx context.Context, labels []forge.Label) error
	// FindLineComments returns the bodies of the comments on lines of that user with a marker.
	FindLineComments(ctx context.Context, number int64, marker string) ([]string, error)
	CommentOnLines(ctx context.Context, number int64, head, text string, comments []forge.LineComment) error
	SetStatus(ctx context.Context, s forge.Status) error
	// FindStatus returns the status of a commit with a name; nil if there is none.
	FindStatus(ctx context.Context, commit, name string) (*forge.Status, error)
	// LineURL returns the address at which a browser shows a line of a file of a commit.
	LineURL(commit, path string, line int) string
}

// A Source has the commits of pull requests.
type Source interface {
	// FetchRef fetches the commit of a reference.
	FetchRef(ctx context.Context, ref, commit string) error
	// Merge returns the files of a merge of two commits.
	Merge(ctx context.Context, base, head string) (fs.FS, error)
	// HeadLines returns where the head has lines of these files.
	HeadLines(ctx context.Context, base, head string, merged fs.FS, positions []gitsource.Position) ([]gitsource.HeadLine, error)
	Commit(ctx context.Context, hash string) (gitsource.Commit, error)
}

// Config configures a Reviewer.
type Config struct {
	Forge  Forge
	Source Source
	// Loader loads the merged files, with the limits of any commit. Only the Reviewer uses it.
	Loader *hub.Loader
	// FetchBase and FetchChart fetch a remote base and a chart that a pull request locks newly into the cache of Loader. If they
	// are nil, nothing is fetched.
	FetchBase  func(ctx context.Context, url, commit string) error
	FetchChart func(ctx context.Context, chart hub.RemoteChart) error
	// Attempt records that planning a commit begins, and returns the function to call when it
	// has ended. An error says that planning the commit has crashed the process before.
	Attempt func(commit string) (end func(), err error)
	// Try runs a trial on a member; nil runs none.
	Try func(ctx context.Context, t Trial) ([]member.Change, error)
	// Brake decides which deletions members hold.
	Brake forecast.Brake
	// Fleet is the name of the fleet, and Base the tracked branch.
	Fleet, Base string
	// StatusFleet is part of the names of commit statuses, so that fleets that use the same
	// repository do not overwrite each other's; empty if there is only one.
	StatusFleet string
	// Plans enables plans on pull requests, and Rollouts statuses on the commits of the base.
	Plans, Rollouts bool
	// ForksLabel is the label with which a maintainer allows the present head of a pull request from a
	// fork to be planned. If it is empty, none from a fork is planned.
	ForksLabel string
	// AuthorSetsLabels says that on this forge the author of a pull request can set its labels, so
	// that none from a fork is planned.
	AuthorSetsLabels bool
	// Interval is the time between two lists of open pull requests, and Pause the time between
	// two plans.
	Interval, Pause time.Duration
	Log             *slog.Logger
}

// ownBranches is the prefix of the branches from which gitfleet itself opens pull requests.
const ownBranches = "gitfleet/"

// A Reviewer writes plans and statuses to a forge. All state is on the forge: the comment with
// a plan identifies the plan.
type Reviewer struct {
	cfg      Config
	reports  chan *status.Report
	previews chan previewRequest
	wakes    poll.Loop
	// tried receives plans with the results of their trials. trials are the running ones, at
	// most one at a time, and slots are those for previews.
	tried    chan trialResult
	trials   sync.WaitGroup
	slots    chan struct{}
	problems poll.Problems
	replanner

	// The fields below belong to Run's goroutine.
	report *status.Report
	// tip is the newest commit of the base, fleet the fleet for which plans are made, and state
	// the hash of its state.
	tip, state string
	fleet      *forecast.Running
	reviews    map[int64]*review
	// forks are the listed pull requests from forks.
	forks map[int64]fork
	// listed is when the open pull requests were last listed. woken requests another list.
	listed time.Time
	woken  bool
	// planned is when the last plan was started. newestFirst says that it was that of the newest head, before others.
	planned     time.Time
	newestFirst bool
	rollout     rollout
	// trying says that trials are running.
	trying bool
	// forge is the backoff of requests about pull requests.
	forge poll.Backoff
	label forksLabel
	// linesRefused says that the last comments on lines were refused.
	linesRefused bool
}

// A review is the state of one open pull request.
type review struct {
	pr forge.PullRequest
	// headOrder is the number of the head, in the order in which heads were found.
	headOrder int
	// key identifies the last plan, if it is not stale. shown is the status of the commit.
	key   string
	shown forge.Status
	// tried is when it was last planned; zero if it never was.
	tried time.Time
	// marked says that the status shows that the plan is awaited, or outdated.
	marked bool
	// trialsRunning says that trials of the plan are running. answered is the plan with their results;
	// nil until they have finished.
	trialsRunning bool
	answered      *Result
	retry         poll.Backoff
}

// planned records that a plan was written.
func (r *review) planned(key string) {
	r.key, r.marked, r.trialsRunning, r.answered, r.retry = key, false, false, nil, poll.Backoff{}
}

// New returns a Reviewer that does nothing until it runs.
func New(cfg Config) *Reviewer {
	v := &Reviewer{cfg: cfg, reports: make(chan *status.Report, 1), previews: make(chan previewRequest), wakes: poll.NewLoop(), replanner: replanner{requested: map[int64]bool{}, asked: make(chan struct{}, 1)}, tried: make(chan trialResult, 1), slots: make(chan struct{}, maxPreviewTrials), reviews: map[int64]*review{}}
	v.rollout.cfg = &v.cfg
	return v
}

// Observe takes a new report. It never blocks. Only one goroutine may call it.
func (v *Reviewer) Observe(r *status.Report) {
	select {
	case <-v.reports:
	default:
	}
	v.reports <- r
}

// Wake causes a list of the open pull requests now. It never blocks, and any goroutine may call
// it. On a nil Reviewer it does nothing.
func (v *Reviewer) Wake() {
	if v != nil {
		v.wakes.Wake()
	}
}

// Problems lists what cannot be done on the forge, since when and why. Any goroutine may call
// it. For a nil Reviewer it is empty.
func (v *Reviewer) Problems() []string {
	if v == nil {
		return nil
	}
	return v.problems.List()
}

// Run works until ctx is done. An error of the forge does not end it: the error is logged and
// the request is retried.
func (v *Reviewer) Run(ctx context.Context) error {
	timer := time.NewTimer(v.cfg.Interval)
	defer timer.Stop()
	defer v.endTrials()
	defer v.problems.Set(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case v.report = <-v.reports:
		case q := <-v.previews:
			v.preview(ctx, q)
		case <-v.wakes:
			v.woken = true
		case t := <-v.tried:
			v.recordAnswers(t)
		case <-v.asked:
			for number := range v.takeRequested() {
				if r := v.reviews[number]; r != nil {
					r.key, r.marked, r.retry = "", true, poll.Backoff{} // the plan that is shown is not known to be stale
				}
			}
		case <-timer.C:
		}
		if v.ready() {
			timer.Reset(v.pass(ctx, time.Now()))
		} else {
			timer.Reset(v.cfg.Interval)
		}
	}
}

// ready reports whether there is a plan of the fleet.
func (v *Reviewer) ready() bool {
	return v.report != nil && v.report.InForce != nil && v.report.Decided()
}

// pass updates the forge as far as possible, and returns the time of the next pass.
func (v *Reviewer) pass(ctx context.Context, now time.Time) time.Duration {
	next := v.update(ctx, now)
	var problems []string
	if v.forge.Failures() > 0 {
		problems = append(problems, "pull requests are not planned "+v.forge.String())
	}
	if v.rollout.retry.Failures() > 0 {
		problems = append(problems, "the rollout is not shown on commits "+v.rollout.retry.String())
	}
	v.problems.Set(problems)
	return next
}

func (v *Reviewer) update(ctx context.Context, now time.Time) time.Duration {
	next := v.cfg.Interval
	if v.cfg.Rollouts {
		next = min(next, v.rollout.pass(ctx, v.report, now))
	}
	if !v.cfg.Plans {
		return next
	}
	if wait := v.forge.Wait(now); wait > 0 {
		return min(next, wait)
	}
	wait, err := v.advance(ctx, now)
	v.forge.Record(ctx, err, now, v.cfg.Log, "plans not written to the forge", "the forge answers again")
	switch {
	case ctx.Err() != nil:
		return next
	case err != nil:
		return min(next, v.forge.Wait(now))
	}
	return min(next, wait)
}

// advance plans at most one pull request.
func (v *Reviewer) advance(ctx context.Context, now time.Time) (time.Duration, error) {
	v.woken = v.updateFleet(now) || v.woken
	since := now.Sub(v.listed)
	switch {
	case v.listed.IsZero(), since >= v.cfg.Interval, v.woken && since >= poll.Spacing:
		if err := v.list(ctx, now); err != nil {
			return 0, err
		}
	case v.woken:
		return min(v.cfg.Interval, poll.Spacing) - since, nil
	}
	if err := v.writeAnswers(ctx, now); err != nil {
		return 0, err
	}
	waiting, wait := v.outdated(now), v.planned.Add(v.cfg.Pause).Sub(now)
	var next *review
	if len(waiting) > 0 && !v.trying && wait <= 0 {
		next = waiting[0]
	}
	switch more, err := v.markOutdated(ctx, waiting, next, now); {
	case err != nil, len(waiting) == 0:
		return v.cfg.Interval, err
	case next == nil && more:
		return v.cfg.Pause, nil
	case v.trying:
		return v.cfg.Interval, nil
	case next == nil:
		return wait, nil
	}
	v.newestFirst = len(waiting) > 1 && next == v.newest(waiting)
	v.planned, next.tried = now, now
	if err := v.recordError(ctx, next, v.plan(ctx, next, now), now); err != nil {
		return 0, err
	}
	if len(waiting) > 1 {
		return v.cfg.Pause, nil
	}
	return v.cfg.Interval, nil
}

// recordError records an error about a pull request, so that others are planned first. It returns the
// error if others are likely to meet it too.
func (v *Reviewer) recordError(ctx context.Context, r *review, err error, now time.Time) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if r.retry.Fail(err, now) {
		v.cfg.Log.Warn("pull request not planned; trying again", "url", r.pr.URL, "commit", r.pr.Head, "err", err)
	}
	if forge.IsGeneral(err) {
		return err
	}
	return nil
}

// updateFleet records the fleet in the report, and reports whether the fleet or the base has changed.
func (v *Reviewer) updateFleet(now time.Time) bool {
	tip := cmp.Or(v.report.Source.Newest.Hash, v.report.InForce.Commit.Hash)
	state := fleetState(v.report.Plan(), v.report.InForce.Commit.Hash)
	if tip == v.tip && state == v.state {
		return false
	}
	v.tip, v.state = tip, state
	v.fleet = forecast.NewRunning(v.report.InForce, v.report.Plan(), now)
	return true
}

// list finds the open pull requests that are to be planned.
func (v *Reviewer) list(ctx context.Context, now time.Time) error {
	if v.woken {
		v.cfg.Forge.ForgetList() // a cached list may have pull requests that are merged now
	}
	open, err := v.cfg.Forge.ListOpen(ctx, v.cfg.Base)
	if err != nil {
		return err
	}
	v.label.ensure(ctx, &v.cfg)
	forks := map[int64]fork{}
	for _, pr := range open {
		if pr.Fork {
			if forks[pr.Number], err = v.observeFork(ctx, pr, v.forks[pr.Number]); err != nil {
				return err
			}
		}
	}
	v.forks, v.listed, v.woken = forks, now, false
	before := v.reviews
	v.reviews = map[int64]*review{}
	seen := 0
	for _, r := range before {
		seen = max(seen, r.headOrder)
	}
	for _, pr := range open {
		if !v.isPlanned(pr) {
			continue
		}
		r := before[pr.Number]
		if r == nil || r.pr.Head != pr.Head {
			seen++
			r = &review{headOrder: seen}
		}
		r.pr = pr
		v.reviews[pr.Number] = r
	}
	planning := slices.Collect(maps.Keys(v.reviews))
	v.planning.Store(&planning)
	return nil
}

// isPlanned reports whether a pull request is planned; one from a fork is only if a maintainer
// allows it for its head.
func (v *Reviewer) isPlanned(pr forge.PullRequest) bool {
	return pr.Head != "" && (!pr.Fork || v.refusesFork(pr) == "")
}

// openedByGitfleet reports whether gitfleet itself opened a pull request. Such a pull request describes its
// effects, so that its plan is only a status.
func openedByGitfleet(pr forge.PullRequest) bool {
	return !pr.Fork && strings.HasPrefix(pr.Branch, ownBranches)
}

// key identifies a plan: the two commits and the fleet.
func (v *Reviewer) key(pr forge.PullRequest) string {
	return shortHash(pr.Head) + "-" + shortHash(v.tip) + "-" + v.state
}

// plan plans one pull request, and writes what came of it. The comment comes last: what is
// in it need not be written again.
func (v *Reviewer) plan(ctx context.Context, r *review, now time.Time) error {
	key := v.key(r.pr)
	result, err := v.result(ctx, r.pr)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		text, lasting := publicReason(err)
		if !lasting && r.retry.Failures() == 0 {
			return err // the next attempt will probably succeed
		}
		if err := v.setPlanStatus(ctx, r, forge.StatusErrored, "not planned: "+text); err != nil {
			return err
		}
		if !lasting {
			return err
		}
		v.cfg.Log.Warn("pull request not planned", "url", r.pr.URL, "commit", r.pr.Head, "err", err)
		r.planned(key)
		return nil
	}
	asks := v.runsTrials(r.pr.Fork, result)
	if err := v.writePlan(ctx, r, result, key, asks); err != nil || !asks {
		return err
	}
	r.trialsRunning = true
	v.startTrials(ctx, r.pr.Number, key, result)
	return nil
}
