// Package review shows on a forge what commits do to the fleet.
//
// A [Reviewer] plans each open pull request as if it were merged, and writes the plan into one
// comment and a commit status. It also shows the progress of the rollout on the commits of the
// base. The state of the clusters is that of the loop's report. If it is configured, some
// members are asked by dry runs what they would do; nothing is applied.
package review

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

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
