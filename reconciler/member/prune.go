package member

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// A stale is an object that a placement has here and does not want any more.
type stale struct {
	inv  *inventory
	item *item
	// handedOver says that another placement wants it: only this inventory
	// forgets it.
	handedOver bool
	// heir is the placement that awaits it, and is to keep it; zero if there is
	// none.
	heir api.PlacementKey
}

// passesOn reports whether only an inventory forgets the object.
func (st *stale) passesOn() bool { return st.handedOver || st.heir != api.PlacementKey{} }

// prune removes what nobody wants any more: last what was applied first. It
// deletes only what an inventory lists, what still carries our label, and the
// very object it saw, by its UID.
func (s *session) prune(ctx context.Context, stales []stale, touched map[api.PlacementKey]bool) {
	slices.SortFunc(stales, func(a, b stale) int { return work.DeleteOrder(a.item.id(), b.item.id()) })
	for _, st := range s.bequeath(ctx, stales, touched) {
		id := st.item.id()
		if s.braked[id] != "" && !st.passesOn() {
			continue
		}
		if t := s.trouble[id]; t != nil && !st.passesOn() && time.Now().Before(t.next) {
			continue
		}
		if s.removed(ctx, st) {
			st.inv.items.drop(id)
			if !st.passesOn() {
				delete(s.trouble, id)
			}
			touched[st.inv.Placement] = true
			faults.At("pruned")
		} else if l := s.live.of(id); l != nil && l.terminating && !st.passesOn() && st.item.Hash != "" {
			given := *st.item
			given.Hash = "" // should it be wanted again before it is gone, nobody has to put it back
			st.inv.items.put(given)
			touched[st.inv.Placement] = true
		}
	}
}

// removed reports whether an object is not ours to care for any more.
func (s *session) removed(ctx context.Context, st stale) bool {
	id := st.item.id()
	if st.handedOver {
		w, _ := s.wanted.of(id)
		return s.owns(w.placement, id)
	}
	if st.heir != (api.PlacementKey{}) {
		return s.owns(st.heir, id)
	}
	l, err := s.present(ctx, st.item)
	switch {
	case err != nil:
		return s.succeeded(st, err)
	case l == nil || l.fleet != s.cfg.Fleet:
		return true // gone, or not ours any more: leave it
	}
	if s.releases(st, l) {
		err := s.release(ctx, st)
		s.rememberGone(st, history.Released, err)
		return s.succeeded(st, err)
	}
	if l.terminating {
		return !s.awaits(st)
	}
	res, ok := s.kinds.of(st.item.gvk())
	if !ok {
		return s.succeeded(st, s.kinds.failed[st.item.gvk().GroupVersion()]) // if its kind is gone, so is it
	}
	if !s.allowed(st) {
		if stays := s.staysIn(ctx, st.item); stays != "" {
			return s.succeeded(st, fmt.Errorf("the Namespace holds what stays: %s", stays))
		}
		if why := s.content(ctx, res, st.item); why != "" {
			s.hold(id, why)
			return false
		}
	}
	lingers, err := s.delete(ctx, res, id, l.uid, s.propagation(st))
	s.rememberGone(st, history.Deleted, err)
	if !s.succeeded(st, err) {
		return false
	}
	if !lingers || !s.awaits(st) {
		return true
	}
	going := *l
	going.terminating = true
	s.live.put(id, &going)
	return false
}

// awaits reports whether an object that is on its way out is waited for: when
// all of a placement goes, it is gone when nothing is left of it. The watch tells
// when; where there is none, nobody would.
func (s *session) awaits(st stale) bool {
	return !s.placed(st.inv.Placement) && s.watch.of(st.item.gvk()).sees()
}

// present is what is there of an object: what the watch knows, or, where there
// is none, what the server says.
func (s *session) present(ctx context.Context, it *item) (*live, error) {
	if l := s.live.of(it.id()); l != nil || s.watch.of(it.gvk()).sees() {
		return l, nil
	}
	res, ok := s.kinds.of(it.gvk())
	if !ok {
		return nil, s.kinds.failed[it.gvk().GroupVersion()]
	}
	found, err := s.read(ctx, res, it.id())
	if err != nil || found == nil {
		return nil, err
	}
	return liveOf(found), nil
}

// succeeded notes the result of a removal; one that failed is tried again.
func (s *session) succeeded(st stale, err error) bool {
	result := "ok"
	if err != nil {
		result = "error"
	}
	s.cfg.Metrics.Applies.WithLabelValues(s.cfg.Name, "Delete", result).Inc()
	if err == nil {
		return true
	}
	id := st.item.id()
	t := s.trouble[id]
	if t == nil {
		t = &trouble{since: time.Now()}
		s.trouble[id] = t
	}
	t.next = time.Now().Add(max(t.failures.next(firstRetry, lastRetry), retryAfter(err)))
	if t.logged.due("not removed" + verdict(err)) {
		s.cfg.Log.Warn("object not removed", "cluster", s.cfg.Name, "placement", st.inv.Placement.String(), "object", id.String(), "err", err)
	}
	return false
}
