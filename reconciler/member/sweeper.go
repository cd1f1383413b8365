package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

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
				if w.progress.unprocessed[id] {
					w.progress.suspect(id) // compared when the change of the object is processed
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
	return t, asApplied && !w.progress.unprocessed[id]
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
			w.applier.record.read(id, nil)
			if live != nil {
				w.applier.record.read(id, observed.Of(live))
			}
		case read.Version <= known.Version:
			continue
		default:
			read.Health = known.Health
			w.applier.record.read(id, read)
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
