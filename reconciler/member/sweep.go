package member

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A sweep verifies that the watches report everything. A few times a day it lists all our
// objects, kind by kind, and compares them with the known state. A difference that no watch has
// reported is reverted like any drift, and counted as a fault of the watch.
type sweep struct {
	timer *time.Timer
	// kinds are those that remain to be listed in this round, and doubts are objects to be
	// checked again.
	kinds  []schema.GroupVersionKind
	doubts map[api.ID]*observed.Object // the object as it was read; nil if it did not exist
	busy   bool                        // a round has begun
}

// grace is how long a watch may lag behind a list.
const grace = 10 * time.Second

// pause returns the time until the next step of a sweep.
func (s *session) pause() time.Duration {
	if s.sweeping.busy {
		return min(grace, s.cfg.Sweep)
	}
	return s.cfg.Sweep*3/4 + rand.N(s.cfg.Sweep/2+1) // clusters are not all swept at the same time
}

// pauseSweep schedules the next step of the sweep, if sweeps are enabled.
func (s *session) pauseSweep() {
	if s.cfg.Sweep > 0 {
		s.sweeping.timer.Reset(s.pause())
	}
}

// sweepOn runs one step of a sweep: it checks the doubts and lists one more kind.
func (s *session) sweepOn(ctx context.Context) {
	defer s.pauseSweep()
	if s.conn.CutOff() || s.leaving || s.blocked {
		return
	}
	w := &s.sweeping
	if !w.busy {
		w.busy, w.doubts = true, map[api.ID]*observed.Object{}
		for _, k := range s.watch.All() {
			w.kinds = append(w.kinds, k.GVK)
		}
	}
	s.settleDoubts(ctx)
	if len(w.kinds) == 0 {
		w.busy = false
		s.cfg.Metrics.Swept.WithLabelValues(s.cfg.Name).SetToCurrentTime()
		return
	}
	gvk := w.kinds[0]
	w.kinds = w.kinds[1:]
	s.sweepOneKind(ctx, gvk)
}

func (s *session) sweepOneKind(ctx context.Context, gvk schema.GroupVersionKind) {
	if err := s.sweepKind(ctx, gvk); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("kind cannot be read to prove what is known of it", "cluster", s.cfg.Name, "kind", gvk.String(), "err", connection.Plain(err))
	}
}

// sweepNow runs a whole sweep, because a user requested it or because very much was written.
func (s *session) sweepNow(ctx context.Context) {
	w := &s.sweeping
	if !w.busy {
		w.busy, w.doubts = true, map[api.ID]*observed.Object{}
	}
	w.kinds = nil
	for _, k := range slices.Clone(s.watch.All()) {
		if s.conn.CutOff() {
			break
		}
		s.sweepOneKind(ctx, k.GVK)
	}
	s.pauseSweep()
}

// sweepKind compares all objects of a kind with their known state.
func (s *session) sweepKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	res, ok := s.kinds.Of(gvk)
	if !ok || !s.watch.Of(gvk).Complete() {
		return nil
	}
	found := map[api.ID]bool{}
	var tasks []task
	x := s.executor()
	var checks []valuesCheck
	opts := metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + s.cfg.Fleet, Limit: 250}
	for {
		page, err := s.conn.WholePage(ctx, res, "", &opts)
		if err != nil {
			return s.conn.RecordResult(err)
		}
		for i := range page.Items {
			o := &page.Items[i]
			id := api.IDOf(o)
			found[id] = true
			switch t, settled := s.settled(id); {
			case !settled:
				if s.unseen[id] {
					s.suspects[id] = true // compared when the change of the object is processed
				}
			case s.unheard(o):
				s.sweeping.doubts[id] = observed.Of(o)
			default:
				tasks, checks = append(tasks, t), append(checks, x.checkValues(ctx, s.withInputs(t), o))
			}
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	for id, w := range s.wanted.all() {
		if _, settled := s.settled(id); settled && !found[id] && w.manifest.Object.Object.GroupVersionKind() == gvk {
			s.sweeping.doubts[id] = nil
		}
	}
	s.concludeChecks(ctx, tasks, checks)
	return nil
}

// settled returns the task of an object, and whether according to the known state nothing has
// to be done about it.
func (s *session) settled(id api.ID) (task, bool) {
	t, asApplied := s.asApplied(id)
	return t, asApplied && !s.unseen[id]
}

// asApplied is settled for an object with a change that may not have been processed yet.
func (s *session) asApplied(id api.ID) (task, bool) {
	w, isWanted := s.wanted.of(id)
	if !isWanted || s.trouble[id] != nil || s.works.reports(w.placement) || s.works.spared(w.placement, id) != "" || scaled(w.manifest, s.live.Of(w.manifest.ID)) {
		return task{}, false
	}
	t := task{wanted: w}
	t.res, _ = s.kinds.Of(w.manifest.Object.Object.GroupVersionKind())
	if inv := s.inv[w.placement]; inv != nil {
		t.item = inv.Items.Of(id)
	}
	l := s.live.Of(id)
	return t, t.item != nil && t.item.Hash == w.manifest.Hash && l != nil && !l.Terminating && l.Managed == t.item.Managed
}

// unheard reports whether an object has changed since the watch last reported it.
func (s *session) unheard(o *unstructured.Unstructured) bool {
	l := s.live.Of(api.IDOf(o))
	return l == nil || observed.ParseVersion(o.GetResourceVersion()) > l.Version
}

// settleDoubts checks again the objects whose state a watch had not reported when they were
// read.
func (s *session) settleDoubts(ctx context.Context) {
	wrong := map[api.ID]bool{}
	for id, read := range s.sweeping.doubts {
		t, settled := s.settled(id)
		known := s.live.Of(id)
		switch {
		case !settled:
			continue // the watch has reported it, or it is being processed
		case read == nil:
			live, err := s.conn.Read(ctx, t.res, id)
			if err != nil || live != nil && !s.unheard(live) {
				continue
			}
			s.live.Drop(id)
			if live != nil {
				s.live.Put(id, observed.Of(live))
			}
		case read.Version <= known.Version:
			continue
		default:
			read.Health = known.Health
			s.live.Put(id, read)
		}
		wrong[id] = true
		s.missed(id, t)
		s.distrust(t)
	}
	clear(s.sweeping.doubts)
	s.mend(ctx, wrong)
}

// distrust restarts the watch of an object's kind, beginning with a list.
func (s *session) distrust(t task) {
	gvk := t.manifest.Object.Object.GroupVersionKind()
	if k := s.watch.Of(gvk); k != nil {
		s.watch.End(k)
	}
}

// missed records that a sweep has found a change that no watch has reported.
func (s *session) missed(id api.ID, t task) {
	s.cfg.Metrics.Missed.WithLabelValues(s.cfg.Name).Inc()
	s.cfg.Log.Error("object was changed and no watch told; please report it", "cluster", s.cfg.Name,
		"placement", t.placement.String(), "object", id.String(), "err", fmt.Errorf("found by the sweep"))
}

// mend applies objects again that have changed although their metadata does not show it.
func (s *session) mend(ctx context.Context, wrong map[api.ID]bool) {
	for id := range wrong {
		w, _ := s.wanted.of(id)
		if inv := s.inv[w.placement]; inv != nil && inv.Items.Has(id) {
			it := inv.Items.Of(id)
			it.Managed = "" // whatever exists is not what was applied
			inv.Items.Put(*it)
		}
	}
	s.process(ctx, wrong)
	s.reportTouched(ctx, wrong)
}
