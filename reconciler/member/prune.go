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
	// newOwner is the placement that awaits it, and is to keep it; zero if there is
	// none.
	newOwner api.PlacementKey
}

// passesOn reports whether only an inventory forgets the object.
func (st *stale) passesOn() bool { return st.handedOver || st.newOwner != api.PlacementKey{} }

// prune removes what nobody wants any more: last what was applied first. It
// deletes only what an inventory lists, what still carries our label, and the
// very object it saw, by its UID. The inventory lists it until it is gone.
func (s *session) prune(ctx context.Context, stales []stale, touched map[api.PlacementKey]bool) {
	slices.SortFunc(stales, func(a, b stale) int { return work.DeleteOrder(a.item.id(), b.item.id()) })
	for _, st := range s.handOver(ctx, stales, touched) {
		id := st.item.id()
		s.pruned[st.inv.Placement] = true
		if !st.passesOn() && s.stillHeld(st.item) {
			continue
		}
		if t := s.trouble[id]; t != nil && !st.passesOn() && time.Now().Before(t.next) {
			continue
		}
		if s.removed(ctx, st) {
			st.inv.items.drop(id)
			if !st.passesOn() {
				delete(s.trouble, id)
				delete(s.braked, id)
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
	if st.newOwner != (api.PlacementKey{}) {
		return s.owns(st.newOwner, id)
	}
	if id.Namespace == api.Namespace || id == ownNamespace {
		return true // an inventory of an older version lists it; it is never content
	}
	l, err := s.present(ctx, st.item)
	switch {
	case err != nil:
		return s.succeeded(ctx, st, err)
	case l == nil || l.fleet != s.cfg.Fleet:
		return true // gone, or not ours any more: leave it
	}
	res, served, err := s.serves(ctx, st.item.gvk())
	if err != nil || !served {
		return s.succeeded(ctx, st, err)
	}
	if s.releases(st, l) {
		released, err := s.release(ctx, res, st)
		if released || err != nil {
			s.rememberGone(st, history.Released, err)
		}
		return s.succeeded(ctx, st, err)
	}
	if l.terminating {
		delete(s.trouble, id)
		return !s.watch.of(st.item.gvk()).sees()
	}
	if !s.allowed(st) {
		if why := s.held(st, s.containersOf(st.inv)); why != "" {
			s.braked[id] = braked{why: why}
			return false
		}
		if stays := s.remainingIn(ctx, st.item); stays != "" {
			return s.succeeded(ctx, st, fmt.Errorf("the Namespace holds what stays: %s", stays))
		}
		if why := s.content(ctx, res, st.item); why != "" {
			s.hold(id, why)
			return false
		}
	}
	result, err := s.delete(ctx, res, id, l.uid, s.propagation(st))
	if err == nil && result == alreadyGone {
		return true // somebody else has deleted it
	}
	s.rememberGone(st, history.Deleted, err)
	if err == nil {
		s.recordDeletion(st)
	}
	if !s.succeeded(ctx, st, err) {
		return false
	}
	if result == deletedNow || !s.watch.of(st.item.gvk()).sees() {
		return true // without a watch nobody would notice when it is gone
	}
	going := *l
	going.terminating = true
	s.live.put(id, &going)
	return false
}

// present is what is there of an object: what the watch knows, or, where there
// is none, what the server says.
func (s *session) present(ctx context.Context, it *item) (*live, error) {
	if l := s.live.of(it.id()); l != nil || s.watch.of(it.gvk()).sees() {
		return l, nil
	}
	res, served, err := s.serves(ctx, it.gvk())
	if err != nil || !served {
		return nil, err
	}
	found, err := s.read(ctx, res, it.id())
	if err != nil || found == nil {
		return nil, err
	}
	return liveOf(found), nil
}
