package review

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The limits of the trials of one plan.
const (
	maxTrials       = 3
	maxTrialObjects = 50
	trialTimeout    = 15 * time.Second
	// maxPreviewTrials is the maximum number of previews whose trials run at the same time.
	maxPreviewTrials = 2
)

// planTrials returns the trials of a plan: for some of the clusters, beginning with one of each
// group with the same changes. rest is the number of objects that are left out.
func planTrials(report *status.Report, fleet *forecast.Running, f *forecast.Forecast, r *Result) (out []Trial, rest int) {
	targets, total := r.targets()
	rest = total
	for _, name := range r.representatives(unhealthy(report)) {
		if len(out) == maxTrials {
			break
		}
		t := Trial{Cluster: fleet.Member(name), Targets: targets[name][:min(maxTrialObjects, len(targets[name]))]}
		if t.Cluster == nil || len(t.Targets) == 0 {
			continue
		}
		if t.Works = f.Works(name); t.Works != nil {
			out, rest = append(out, t), rest-len(t.Targets)
		}
	}
	return out, rest
}

// targets returns the objects that are created or changed, by cluster, and their number.
// Objects of renamed placements are left out, since they belong to the old name until the
// merge.
func (r *Result) targets() (by map[string][]member.Target, total int) {
	renamed := map[string]bool{}
	for _, p := range r.Changes.Placements {
		renamed[p.Placement] = p.RenamedFrom != ""
	}
	by = map[string][]member.Target{}
	add := func(cluster string, key api.PlacementKey, id api.ID) {
		if !renamed[key.String()] {
			by[cluster] = append(by[cluster], member.Target{Placement: key, ID: id})
			total++
		}
	}
	for _, c := range r.Changes.Contents {
		for _, name := range c.Clusters {
			add(name, c.Placement, c.After.ID)
		}
	}
	for _, c := range r.Changes.Clusters {
		for _, o := range c.Gained {
			if key, err := api.ParsePlacement(o.Placement); err == nil {
				add(c.Cluster, key, o.ID())
			}
		}
	}
	return by, total
}

// representatives returns the clusters with changes, except those in without: one of each group
// with the same changes, and then the others.
func (r *Result) representatives(without map[string]bool) []string {
	var first, others []string
	for _, g := range r.groups() {
		clusters := slices.DeleteFunc(slices.Clone(g.clusters), func(name string) bool { return without[name] })
		if len(clusters) > 0 {
			first, others = append(first, clusters[0]), append(others, clusters[1:]...)
		}
	}
	return append(first, others...)
}

// unhealthy returns the clusters in a report that did not answer the last probe, or have never
// answered.
func unhealthy(report *status.Report) map[string]bool {
	out := map[string]bool{}
	for _, c := range report.Clusters {
		out[c.Name] = !status.IsHealthy(c)
	}
	return out
}

// runTrials runs the trials in parallel for a limited time.
func (v *Reviewer) runTrials(ctx context.Context, r *Result) *Answers {
	end := ctx
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	a := &Answers{Members: make([]Answer, len(r.trials)), Rest: r.untried}
	var trials sync.WaitGroup
	for i, t := range r.trials {
		trials.Go(func() { a.Members[i] = v.runTrial(ctx, t) })
	}
	trials.Wait()
	for _, m := range a.Members {
		if m.Err != nil && end.Err() == nil {
			v.cfg.Log.Warn("member not asked about a pull request", "cluster", m.Cluster, "err", m.Err)
		}
	}
	return a
}

// runTrial runs one trial. A member that has not finished when ctx is done counts as one that did
// not answer.
func (v *Reviewer) runTrial(ctx context.Context, t Trial) Answer {
	answer := make(chan Answer, 1)
	go func() {
		changes, err := v.callTry(ctx, t)
		answer <- Answer{Cluster: t.Cluster.Name, Objects: len(t.Targets), Changes: changes, Err: err}
	}()
	if m, ok := receive(ctx, answer); ok {
		return m
	}
	return Answer{Cluster: t.Cluster.Name, Objects: len(t.Targets), Err: ctx.Err()}
}

// receive waits for an answer until ctx is done. One that is there by then is not lost.
func receive(ctx context.Context, answer <-chan Answer) (m Answer, ok bool) {
	select {
	case m = <-answer:
		return m, true
	case <-ctx.Done():
	}
	select {
	case m = <-answer:
		return m, true
	default:
		return m, false
	}
}

// callTry runs one trial. A panic becomes an error.
func (v *Reviewer) callTry(ctx context.Context, t Trial) (changes []member.Change, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			v.cfg.Log.Error("asking a member about a pull request panicked", "cluster", t.Cluster.Name, "err", fault, "stack", string(debug.Stack()))
			err = errors.New("internal error of gitfleet; see its log")
		}
	}()
	return v.cfg.Try(ctx, t)
}

// runsTrials reports whether trials are run for a plan. Objects of a pull request from a fork are
// never sent to members.
func (v *Reviewer) runsTrials(fork bool, r *Result) bool {
	return v.cfg.Try != nil && !fork && !r.Failed() && len(r.trials) > 0
}

// A trialResult is a plan with the results of its trials.
type trialResult struct {
	number int64
	key    string
	result *Result
}

// startTrials starts the trials of a plan. The plan is written again when they have finished.
func (v *Reviewer) startTrials(ctx context.Context, number int64, key string, result *Result) {
	v.trying = true
	v.trials.Go(func() {
		answered := *result
		answered.Answers = v.runTrials(ctx, result)
		answered.trials = nil
		v.tried <- trialResult{number, key, &answered}
	})
}

// recordAnswers takes the results of the trials, unless the plan has changed meanwhile.
func (v *Reviewer) recordAnswers(t trialResult) {
	v.trying = false
	if r := v.reviews[t.number]; r != nil && r.key == t.key {
		r.answered = t.result
	}
}

// writeAnswers writes the plans whose trials have finished again.
func (v *Reviewer) writeAnswers(ctx context.Context, now time.Time) error {
	for _, r := range v.reviews {
		if r.answered == nil || r.key != v.key(r.pr) || r.retry.Wait(now) > 0 {
			continue
		}
		if err := v.recordError(ctx, r, v.writePlan(ctx, r, r.answered, r.key, false), now); err != nil {
			return err
		}
	}
	return nil
}

// endTrials waits for the running trials, whose context is done.
func (v *Reviewer) endTrials() {
	v.trials.Wait()
	select {
	case <-v.tried:
	default:
	}
	v.trying = false
	for _, r := range v.reviews {
		if r.trialsRunning {
			r.key, r.trialsRunning, r.answered = "", false, nil // it will be planned again
		}
	}
}
