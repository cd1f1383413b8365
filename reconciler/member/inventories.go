package member

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// loadInventories reads the inventories on the cluster.
func (s *session) loadInventories(ctx context.Context) error {
	all, err := s.store.Load(ctx)
	if err == nil {
		s.inv = all
	}
	return err
}

// inventory returns the inventory of a placement, which is empty if it is new.
func (s *session) inventory(p api.PlacementKey) *inventory.Inventory {
	inv := s.inv[p]
	if inv == nil {
		inv = &inventory.Inventory{Placement: p}
		s.inv[p] = inv
	}
	return inv
}

// owns reports whether the inventory of a placement lists an object.
func (s *session) owns(p api.PlacementKey, id api.ID) bool {
	inv := s.inv[p]
	return inv != nil && inv.Items.Has(id)
}

// unwritten reports whether an inventory should be written as soon as possible.
func (s *session) unwritten(inv *inventory.Inventory) bool {
	return !inv.Stored() && !s.works.resting(inv.Placement)
}

// saveInventories writes the inventories that changed, each at most once, and removes empty
// ones whose placement is gone.
func (s *session) saveInventories(ctx context.Context, touched map[api.PlacementKey]bool) {
	for p, inv := range s.inv {
		w, told := s.works[p]
		if told && (s.store.NamesOther(inv) || inv.Abandon != w.Abandon || w.Remove && len(inv.Items.Map) == 0 || inv.Revision != w.Revision && s.complete(p)) {
			touched[p] = true
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(touched), func(a, b api.PlacementKey) int { return cmp.Compare(a.String(), b.String()) }) {
		inv := s.inv[p]
		if inv == nil || s.works.resting(p) {
			continue
		}
		w, told := s.works[p]
		var err error
		switch {
		case told && w.Remove && len(inv.Items.Map) == 0:
			if len(s.inv) == 1 {
				err = s.store.DeleteClaim(ctx)
			}
			if err == nil {
				err = s.store.Delete(ctx, inv)
			}
			if err == nil {
				delete(s.inv, p)
			}
		default:
			if told && s.complete(p) {
				inv.Revision = w.Revision
			}
			if told {
				inv.Abandon = w.Abandon
			}
			s.finishAdoption(inv)
			faults.At("before inventory")
			err = s.store.Save(ctx, inv)
			faults.At("after inventory")
		}
		if err == nil {
			inv.Failures = retry.LogLimiter{}
			continue
		}
		inv.Invalidate()
		if ctx.Err() == nil && inv.Failures.Due(connection.WithoutPort(err)) {
			s.cfg.Log.Warn("inventory not written; trying again", "cluster", s.cfg.Name, "placement", p.String(), "err", err)
		}
	}
	s.reportOwners()
}

// complete reports whether every object that a placement wants here is applied.
func (s *session) complete(p api.PlacementKey) bool {
	for _, m := range s.works[p].Manifests {
		if w, _ := s.wanted.of(m.ID); w.placement != p || s.trouble[m.ID] != nil {
			return false
		}
	}
	return !s.works[p].Keep && !s.works[p].Remove
}

// restoreInventories writes inventories again that others have changed or deleted.
func (s *session) restoreInventories(ctx context.Context, touched map[api.ID]bool) {
	for id := range touched {
		if isClaim, changed := s.store.ClaimChanged(id); isClaim {
			if changed {
				s.restoreClaim(ctx)
			}
			continue
		}
		p, changed := s.store.Changed(id, s.suspects[id])
		if !changed {
			continue
		}
		delete(s.suspects, id)
		inv := s.inv[p]
		if inv == nil {
			continue
		}
		inv.Invalidate()
		if s.works.resting(p) {
			continue // it is written again once the suspension is over
		}
		s.cfg.Log.Warn("inventory was changed by somebody else; putting it back", "cluster", s.cfg.Name, "object", id.String())
		if err := s.store.Save(ctx, inv); err != nil {
			s.cfg.Log.Warn("inventory not written", "cluster", s.cfg.Name, "placement", p.String(), "err", err)
		}
	}
}

// restoreClaim writes the claim again if somebody has changed or deleted it.
func (s *session) restoreClaim(ctx context.Context) {
	if err := s.store.RestoreClaim(ctx, len(s.inv)); err != nil {
		s.cfg.Log.Warn("claim not restored; trying again before the next inventory is written", "cluster", s.cfg.Name, "err", err)
	}
}

// inventoried returns the objects that the inventories list.
func (s *session) inventoried() map[api.ID]bool {
	ids := make(map[api.ID]bool, len(s.wanted))
	for _, inv := range s.inv {
		for id := range inv.Items.IDs() {
			ids[id] = true
		}
	}
	return ids
}
