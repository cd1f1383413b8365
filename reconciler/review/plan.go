package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// fleetState returns a hash of everything that a plan depends on except the pull request and
// the base: the commit in force, the clusters, and the clusters of each placement.
func fleetState(p *plan.Plan, inForce string) string {
	h := fnv.New64a()
	text := func(parts ...string) {
		for _, s := range parts {
			io.WriteString(h, s)
			h.Write([]byte{0})
		}
	}
	text(inForce)
	for _, c := range p.Clusters {
		text(c.Name, c.Ineligible)
	}
	for pl := range p.Placements.Values() {
		text("", pl.Key.String())
		for _, c := range pl.Clusters {
			if !c.Binding.Unscheduled && !c.Binding.Removing {
				text(c.Binding.Cluster)
			}
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// A lastingError is a reason why planning a pull request will fail again. Its text may be shown
// to anybody.
type lastingError struct{ text string }

// Error implements error.
func (e *lastingError) Error() string { return e.text }

// errInternal is the reason if planning panicked.
var errInternal = &lastingError{"internal error of gitfleet; see its log"}

// publicReason returns the text about an error that is written to the forge, since the error
// itself may contain paths and hosts. lasting says that the same pull request would meet it
// again.
func publicReason(err error) (text string, lasting bool) {
	if e, ok := errors.AsType[*lastingError](err); ok {
		return e.text, true
	}
	if errors.Is(err, gitsource.ErrTooLarge) {
		return "it exceeds the limits of gitfleet; see its log", true
	}
	return "the reason is in the log of gitfleet; trying again", false
}

// result plans the merge of a pull request. If there is no plan, the error says why.
func (v *Reviewer) result(ctx context.Context, pr forge.PullRequest) (result *Result, err error) {
	end, err := v.cfg.Attempt(pr.Head)
	if err != nil {
		return nil, &lastingError{err.Error()}
	}
	defer end()
	defer func() {
		if fault := recover(); fault != nil {
			v.cfg.Log.Error("planning a pull request panicked", "url", pr.URL, "err", fault, "stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	if err := v.cfg.Source.FetchRef(ctx, pr.HeadRef, pr.Head); err != nil {
		return nil, err
	}
	head, err := v.cfg.Source.Commit(ctx, pr.Head)
	if err != nil {
		return nil, err
	}
	files, err := v.cfg.Source.Merge(ctx, v.tip, pr.Head)
	if conflict, ok := errors.AsType[*gitsource.ConflictError](err); ok {
		return &Result{Conflict: conflict.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	// The merge commit does not exist yet. Its trailers are not known, so it gets no message.
	commit := hub.Commit{Hash: pr.Head, Author: head.Author, Subject: head.Subject, Time: head.Time}
	merged, missing, err := v.cfg.load(ctx, pr, commit, files)
	if bad, ok := errors.AsType[*hub.LoadError](err); ok {
		if bad.Internal {
			return nil, errInternal
		}
		r := &Result{Problems: bad.Problems.ErrorsFirst(), Clusters: len(v.report.InForce.Clusters), Missing: missing}
		v.locate(ctx, pr, files, r)
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r, f, err := planMerge(v.fleet, merged, v.cfg.DeletionLimit)
	if err != nil {
		return nil, err
	}
	r.held, r.Missing = heldDrifts(v.report), missing
	v.locate(ctx, pr, files, r)
	if v.cfg.Try != nil && !r.Failed() {
		r.trials, r.untried = planTrials(v.report, v.fleet, f, r)
	}
	return r, nil
}

// planMerge returns the effects of a commit on a fleet, and the forecast that has them. An error is a
// bug in the program.
func planMerge(fleet *forecast.Running, merged *hub.Snapshot, limit forecast.DeletionLimit) (*Result, *forecast.Forecast, error) {
	f, err := fleet.Forecast(merged)
	if err != nil {
		return nil, nil, err
	}
	r := &Result{Clusters: len(merged.Clusters), Refused: f.Refusal(), Problems: fleet.NewProblems(f)}
	if r.Refused != "" {
		return r, f, nil
	}
	_, r.Changes = f.Compared(limit)
	r.Rollouts = f.Rollouts
	slices.SortStableFunc(r.Changes.Clusters, func(a, b forecast.ClusterChange) int { return len(b.Deleted) - len(a.Deleted) })
	return r, f, nil
}

// A replanner takes requests for another plan.
type replanner struct {
	// planning are the pull requests that are planned.
	planning atomic.Pointer[[]int64]
	// mu protects requested, the pull requests to be planned again. asked has a value while there are some.
	mu        sync.Mutex
	requested map[int64]bool
	asked     chan struct{}
}

// PlanAgain makes an open pull request be planned again soon. It reports false if it is not planned. Any goroutine may call it.
func (v *replanner) PlanAgain(number int64) bool {
	planned := v.planning.Load()
	if planned == nil || !slices.Contains(*planned, number) {
		return false
	}
	v.mu.Lock()
	v.requested[number] = true
	v.mu.Unlock()
	select {
	case v.asked <- struct{}{}:
	default: // Run takes all of them at once
	}
	return true
}

// takeRequested returns the pull requests to be planned again, and forgets them.
func (v *replanner) takeRequested() map[int64]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.requested
	v.requested = map[int64]bool{}
	return out
}

// Follows reports whether an open pull request is planned. Any goroutine may call it.
func (v *replanner) Follows() bool {
	planned := v.planning.Load()
	return planned != nil && len(*planned) > 0
}

// ready reports whether there is a plan of the fleet.
func (v *Reviewer) ready() bool {
	return v.report != nil && v.report.InForce != nil && v.report.Decided()
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
