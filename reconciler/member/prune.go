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
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A stale is an object that the inventory of a placement lists here and that the placement no
// longer wants.
type stale struct {
	inv  *inventory.Inventory
	item *inventory.Item
	// handedOver says that another placement wants it: it is only removed from this inventory.
	handedOver bool
	// newOwner is the placement that waits for the object and keeps it; zero if there is none.
	newOwner api.PlacementKey
}

// passesOn reports whether the object is only removed from an inventory.
func (st *stale) passesOn() bool { return st.handedOver || st.newOwner != api.PlacementKey{} }

// prune removes stale objects in the reverse of the order in which they are applied. It deletes
// only objects that are in an inventory and still have our label, each by its UID. The
// inventory lists an object until it is gone.
func (s *session) prune(ctx context.Context, stales []stale, touched map[api.PlacementKey]bool) {
	slices.SortFunc(stales, func(a, b stale) int { return work.DeleteOrder(a.item.ID(), b.item.ID()) })
	for _, st := range s.handOver(ctx, stales, touched) {
		id := st.item.ID()
		s.pruned[st.inv.Placement] = true
		if !st.passesOn() && s.stillHeld(st.item) {
			continue
		}
		if t := s.trouble[id]; t != nil && !st.passesOn() && time.Now().Before(t.next) {
			continue
		}
		if s.removed(ctx, st) {
			st.inv.Items.Drop(id)
			if !st.passesOn() {
				delete(s.trouble, id)
				delete(s.braked, id)
			}
			touched[st.inv.Placement] = true
			faults.At("pruned")
		} else if l := s.live.Of(id); l != nil && l.Terminating && !st.passesOn() && st.item.Hash != "" {
			given := *st.item
			given.Hash = "" // if it is wanted again before it is gone, that is no drift
			st.inv.Items.Put(given)
			touched[st.inv.Placement] = true
		}
	}
}

// removed removes an object, and reports whether it is no longer ours.
func (s *session) removed(ctx context.Context, st stale) bool {
	id := st.item.ID()
	if st.handedOver {
		w, _ := s.wanted.of(id)
		return s.owns(w.placement, id)
	}
	if st.newOwner != (api.PlacementKey{}) {
		return s.owns(st.newOwner, id)
	}
	if id.Namespace == api.Namespace || id == inventory.Namespace {
		return true // inventories of older versions may list it; it is never content
	}
	l, err := s.present(ctx, st.item)
	switch {
	case err != nil:
		return s.succeeded(ctx, st, err)
	case l == nil || l.Fleet != s.cfg.Fleet:
		return true // it is gone, or no longer ours
	}
	res, served, err := s.finder.Serves(ctx, st.item.GroupVersionKind())
	if err != nil || !served {
		return s.succeeded(ctx, st, err)
	}
	if s.releases(st, l) {
		released, err := s.release(ctx, res, st)
		if released || err != nil {
			s.addRemovalHistory(st, history.Released, s.works[st.inv.Placement].Cause, err)
		}
		return s.succeeded(ctx, st, err)
	}
	if l.Terminating {
		delete(s.trouble, id)
		return !s.watch.Of(st.item.GroupVersionKind()).Complete()
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
	result, err := s.conn.Delete(ctx, res, id, l.UID, s.propagation(st))
	if err == nil && result == connection.AlreadyGone {
		return true // somebody else has deleted it
	}
	cause := s.works[st.inv.Placement].Cause
	s.addRemovalHistory(st, history.Deleted, cause, err)
	if err == nil {
		s.recordDeletion(st, cause)
	}
	if !s.succeeded(ctx, st, err) {
		return false
	}
	if result == connection.Deleted || !s.watch.Of(st.item.GroupVersionKind()).Complete() {
		return true // without a watch nothing would report when it is gone
	}
	going := *l
	going.Terminating = true
	s.live.Put(id, &going)
	return false
}

// present returns the live object as its watch knows it or, without a watch, as the server
// returns it.
func (s *session) present(ctx context.Context, it *inventory.Item) (*observed.Object, error) {
	if l := s.live.Of(it.ID()); l != nil || s.watch.Of(it.GroupVersionKind()).Complete() {
		return l, nil
	}
	res, served, err := s.finder.Serves(ctx, it.GroupVersionKind())
	if err != nil || !served {
		return nil, err
	}
	found, err := s.conn.Read(ctx, res, it.ID())
	if err != nil || found == nil {
		return nil, err
	}
	return observed.Of(found), nil
}
