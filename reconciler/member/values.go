package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A valueChecker compares the values of objects that others have written with those that were
// applied.
//
// Values can change without a change of field ownership: somebody applies under our own field
// manager, or an admission webhook changes what others write. The metadata does not show that.
type valueChecker struct {
	*cluster
	desired.View
	progress progress.View
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
	for _, id := range v.applier.record.progress.TakeSuspects() {
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
	if !isWanted || v.progress.HasFailed(id) || v.Works().OnlyCompares(w.Placement) || v.Works().SuspendedReason(w.Placement, id) != "" || apply.Scaled(w.Manifest, v.live.Of(w.Manifest.ID)) {
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
			v.applier.record.progress.Suspect(id) // retried after valuesRetry
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
	if !v.progress.HasSuspects() {
		v.compareFailures = 0
	} else {
		v.compareNext = time.Now().Add(v.compareFailures.Next(valuesRetry, progress.LastRetry))
	}
	return valueResults{changed, news}
}

// repeatedRemovals yields the objects to which a rejected addition was made once more, and the time from which it may be
// removed again.
func (dr *driftRecorder) repeatedRemovals() iter.Seq2[desired.Object, time.Time] {
	return func(yield func(desired.Object, time.Time) bool) {
		for id, removed := range dr.drift.AllRemoved() {
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
	removed := dr.drift.Removed(id)
	who := cmp.Or(removed.By, "another writer")
	message := fmt.Sprintf("%s keeps adding what was rejected: removed %d times so far, next at %s", who, removed.Total, due.UTC().Format(time.RFC3339))
	if !dr.state.Explained(protocol.DriftKey{Placement: w.Placement, ID: id, Addition: true}, message) {
		return false
	}
	dr.cfg.Log.Warn("somebody keeps adding what was rejected; it is removed more slowly", "cluster", dr.cfg.Name, "placement", w.Placement.String(),
		"object", id.String(), "by", who, "times", removed.Total)
	return true
}

// otherRule yields the objects to which others have added something that is to be offered now and was only reported, or the other way
// round. Their values have to be compared.
func (dr *driftRecorder) otherRule() iter.Seq[api.ID] {
	return func(yield func(api.ID) bool) {
		for p, d := range dr.drift.Additions() {
			w, isWanted := dr.Wanted().Of(d.ID)
			if isWanted && w.Placement == p && d.State == api.DriftAdded && d.Rule != dr.additionsRule(apply.Task{Object: w}) && !yield(d.ID) {
				return
			}
		}
	}
}

// A sweeper verifies that the watches report everything. A few times a day it lists all our
// objects, kind by kind, and compares them with the known state. A difference that no watch has
// reported is reverted like any drift, and counted as a fault of the watch.
type sweeper struct {
	*valueChecker
	timer *time.Timer
	// remaining are the kinds to be listed in this round, and unreported are objects to be checked
	// again.
	remaining  []schema.GroupVersionKind
	unreported map[api.ID]*observed.Object // the object as it was read; nil if it did not exist
	busy       bool                        // a round has begun
}

func newSweeper(v *valueChecker) *sweeper {
	w := &sweeper{valueChecker: v, timer: time.NewTimer(time.Hour), unreported: map[api.ID]*observed.Object{}}
	w.timer.Stop()
	return w
}

// begin begins a round.
func (w *sweeper) begin() {
	w.busy, w.remaining = true, w.watchedKinds()
}

// watchedKinds returns the kinds that are watched.
func (w *sweeper) watchedKinds() []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	for _, k := range w.watch.All() {
		gvks = append(gvks, k.GVK)
	}
	return gvks
}

// next returns the next kind of a round; none if the round is complete.
func (w *sweeper) next() (gvk schema.GroupVersionKind, more bool) {
	if len(w.remaining) == 0 {
		w.busy = false
		w.cfg.Metrics.Swept.Set(float64(time.Now().UnixNano())/1e9, w.cfg.Name)
		return gvk, false
	}
	gvk, w.remaining = w.remaining[0], w.remaining[1:]
	return gvk, true
}

// grace is how long a watch may lag behind a list.
const grace = 10 * time.Second

// pause returns the time until the next step of a sweep.
func (w *sweeper) pause() time.Duration {
	if w.busy {
		return min(grace, w.cfg.Sweep)
	}
	return w.cfg.Sweep*3/4 + rand.N(w.cfg.Sweep/2+1) // clusters are not all swept at the same time
}

// schedule sets the timer for the next step. Without sweeps it does nothing.
func (w *sweeper) schedule() {
	if w.cfg.Sweep > 0 {
		w.timer.Reset(w.pause())
	}
}

// checkKind compares all objects of a kind with their known state.
func (w *sweeper) checkKind(ctx context.Context, gvk schema.GroupVersionKind) valueResults {
	res, ok := w.kinds.Of(gvk)
	if !ok || !w.watch.Of(gvk).Complete() {
		return valueResults{}
	}
	found := map[api.ID]bool{}
	var tasks []apply.Task
	x := w.applier.executor()
	var comparisons []apply.ValueComparison
	at := connection.Listing{ListOptions: metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + w.cfg.Fleet, Limit: 250}, Kept: true}
	for {
		page, err := w.conn.WholePage(ctx, res, "", &at.ListOptions)
		more := false
		if err == nil {
			more, err = at.Next(page, len(page.Items))
		}
		if err = w.conn.RecordResult(err); err != nil {
			if ctx.Err() == nil {
				w.cfg.Log.Warn("kind cannot be read to prove what is known of it", "cluster", w.cfg.Name, "kind", gvk.String(), "err", connection.Plain(err))
			}
			return valueResults{}
		}
		for i := range page.Items {
			o := &page.Items[i]
			id := api.IDOf(o)
			found[id] = true
			switch t, settled := w.settled(id); {
			case !settled:
				if w.progress.IsUnprocessed(id) {
					w.applier.record.progress.Suspect(id) // compared when the change of the object is processed
				}
			case w.isNewer(o):
				w.unreported[id] = observed.Of(o)
			default:
				tasks, comparisons = append(tasks, t), append(comparisons, x.CompareValues(ctx, w.applier.withInputs(t), o))
			}
		}
		if !more {
			break
		}
	}
	for id, wanted := range w.Wanted().All() {
		if _, settled := w.settled(id); settled && !found[id] && wanted.GVK() == gvk {
			w.unreported[id] = nil
		}
	}
	return w.conclude(tasks, comparisons)
}

// settled is asApplied, except that it is false while a reported change of the object was not
// processed.
func (w *sweeper) settled(id api.ID) (apply.Task, bool) {
	t, asApplied := w.asApplied(id)
	return t, asApplied && !w.progress.IsUnprocessed(id)
}

// isNewer reports whether an object has changed since the watch last reported it.
func (w *sweeper) isNewer(o *unstructured.Unstructured) bool {
	l := w.live.Of(api.IDOf(o))
	return l == nil || observed.ParseVersion(o.GetResourceVersion()) > l.Version
}

// confirmUnreported checks again the objects whose state a watch had not reported when they were
// read. It returns those that have changed.
func (w *sweeper) confirmUnreported(ctx context.Context) (changed map[api.ID]bool) {
	changed = map[api.ID]bool{}
	for id, read := range w.unreported {
		t, settled := w.settled(id)
		known := w.live.Of(id)
		switch {
		case !settled:
			continue // the watch has reported it, or it is being processed
		case read == nil:
			live, err := w.conn.Read(ctx, t.Res, id)
			if err != nil || live != nil && !w.isNewer(live) {
				continue
			}
			w.applier.record.setLive(id, nil)
			if live != nil {
				w.applier.record.setLive(id, observed.Of(live))
			}
		case read.Version <= known.Version:
			continue
		default:
			read.Health = known.Health
			w.applier.record.setLive(id, read)
		}
		changed[id] = true
		w.cfg.Metrics.SweepMissed.Inc(w.cfg.Name)
		w.cfg.Log.Error("object was changed and no watch told; please report it", "cluster", w.cfg.Name,
			"placement", t.Placement.String(), "object", id.String(), "err", errors.New("found by the sweep"))
		if k := w.watch.Of(t.GVK()); k != nil {
			w.watch.End(k) // a new watch begins with a list
		}
	}
	clear(w.unreported)
	return changed
}
