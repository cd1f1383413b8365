package member

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A valueChecker compares the values of objects that others have written with those that were
// applied.
//
// Values can change without a change of field ownership: somebody applies under our own field
// manager, or an admission webhook changes what others write. The metadata does not show that.
type valueChecker struct {
	*cluster
	desired.View
	progress *progress
	applier  *applier
	drifts   *driftRecorder
	// compareNext is the time of the next comparison of values that could not be compared.
	compareNext     time.Time
	compareFailures retry.Backoff
}

// check reads the objects of tasks and compares their values.
func (v *valueChecker) check(ctx context.Context, tasks []apply.Task) valueResults {
	x := v.applier.executor()
	comparisons := make([]apply.ValueComparison, len(tasks))
	start := func(i int) bool { // on this goroutine, to which what is known belongs
		tasks[i] = v.applier.withInputs(tasks[i])
		return true
	}
	v.inParallel(ctx, len(tasks), parallelCalls{start: start, do: func(i int) {
		t := tasks[i]
		live, err := v.conn.Read(ctx, t.Res, t.Manifest.ID)
		if err != nil || live == nil || drift.Of(t.Applied(v.cfg.Fleet), drift.Marked(live)).Answer == drift.Drifted {
			return // unknown: if the object is gone or its metadata has changed, its watch event follows
		}
		comparisons[i] = x.CompareValues(ctx, t, live)
	}})
	return v.conclude(tasks, comparisons)
}

// tasks takes the suspects whose last change is processed, and returns the tasks of those whose metadata is as it was last applied; the
// other objects are handled as drift, or as failed objects.
func (v *valueChecker) tasks() []apply.Task {
	var tasks []apply.Task
	for _, id := range v.progress.takeSuspects() {
		if t, asApplied := v.asApplied(id); asApplied {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// valueResults are the results of comparisons of values.
type valueResults struct {
	// changed are objects that have to be applied again, and news those whose recorded drift has
	// changed.
	changed, news map[api.ID]bool
}

// valuesRetry is the first delay before values that could not be compared are compared
// again.
const valuesRetry = 2 * time.Second

// manySuspects is the number of objects from which lists are cheaper for the server than single
// reads.
const manySuspects = 100

// asApplied returns the task of an object, and whether the object is by its metadata as it was last
// applied, and nothing failed or remains to be done.
func (v *valueChecker) asApplied(id api.ID) (apply.Task, bool) {
	w, isWanted := v.Wanted().Of(id)
	if !isWanted || v.progress.failed[id] != nil || v.Works().OnlyCompares(w.Placement) || v.Works().SuspendedReason(w.Placement, id) != "" || apply.Scaled(w.Manifest, v.live.Of(w.Manifest.ID)) {
		return apply.Task{}, false
	}
	t := v.applier.newTask(w)
	l := v.live.Of(id)
	return t, t.Item != nil && t.Item.Hash == w.Manifest.Hash && v.driftOf(t.Item, l) != drift.Drifted && !l.Terminating
}

// conclude processes the results of comparisons of values.
func (v *valueChecker) conclude(tasks []apply.Task, comparisons []apply.ValueComparison) valueResults {
	changed, news := map[api.ID]bool{}, map[api.ID]bool{}
	for i, c := range comparisons {
		t := tasks[i]
		id := t.Manifest.ID
		switch c.Answer {
		case drift.Unknown:
			v.progress.suspect(id) // retried after valuesRetry
		case drift.Drifted:
			changed[id] = true
		default:
			generation := v.live.Of(id).Generation
			altered, ignored := v.drifts.recordAltered(t, generation, c.Altered), v.drifts.recordIgnored(t, generation, c.Ignored)
			added := c.Additions != nil && v.drifts.recordAdditions(t, generation, *c.Additions)
			if altered || ignored || added {
				news[id] = true
			}
		}
	}
	if len(v.progress.suspects) == 0 {
		v.compareFailures = 0
	} else {
		v.compareNext = time.Now().Add(v.compareFailures.Next(valuesRetry, lastRetry))
	}
	return valueResults{changed, news}
}

// repeatedRemovals yields the objects to which a rejected addition was made once more, and the time from which it may be
// removed again.
func (dr *driftRecorder) repeatedRemovals() iter.Seq2[desired.Object, time.Time] {
	return func(yield func(desired.Object, time.Time) bool) {
		for id, removed := range dr.removals {
			w, isWanted := dr.Wanted().Of(id)
			if !isWanted {
				continue
			}
			if _, rejected := dr.rejection(apply.Task{Object: w}); rejected && !yield(w, removed.Due()) {
				return
			}
		}
	}
}

// delayRemoval records that a rejected addition is not removed before a time, since somebody makes it again and again. It
// reports whether the record has changed.
func (dr *driftRecorder) delayRemoval(w desired.Object, due time.Time) bool {
	id := w.Manifest.ID
	d, removed := dr.additions[w.Placement][id], dr.removals[id]
	who := cmp.Or(removed.By, "another writer")
	message := fmt.Sprintf("%s keeps adding what was rejected: removed %d times so far, next at %s", who, removed.Total, due.UTC().Format(time.RFC3339))
	if d.Message == message {
		return false
	}
	d.Message = message
	dr.additions.Put(w.Placement, d)
	dr.cfg.Log.Warn("somebody keeps adding what was rejected; it is removed more slowly", "cluster", dr.cfg.Name, "placement", w.Placement.String(),
		"object", id.String(), "by", who, "times", removed.Total)
	return true
}

// otherRules yields the objects to which others have added something that is to be offered now and was only reported, or the other way
// round. Their values have to be compared.
func (dr *driftRecorder) otherRules() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for p, of := range dr.additions {
			for id, d := range of {
				w, isWanted := dr.Wanted().Of(id)
				if isWanted && w.Placement == p && d.State == api.DriftAdded && d.Rule != dr.additionsRule(apply.Task{Object: w}) && !yield(id) {
					return
				}
			}
		}
	}
}
