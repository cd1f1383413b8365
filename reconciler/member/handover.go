package member

import (
	"context"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// Plans pass objects from placement to placement as far as the ledger knows which placement has
// which objects. This file handles what the ledger does not know: it was lost, a commit cannot
// be read, or a cluster has missed an update. An object that another placement is to have is
// never deleted, whatever the plan says. The placement that gives it up moves it to the
// inventory of the other one, which keeps it until that placement applies it.

// newOwners has the placements that are to have objects, by object.
type newOwners map[api.ID]api.PlacementKey

// newOwner returns the placement that is to keep an object which another one gives up: a
// placement that waits for it, or one that also has it and keeps what it has. found is false if
// there is none. If there are several, one that has the object comes first, and then the first
// in order.
func (s *session) newOwner(id api.ID, from api.PlacementKey) (owner api.PlacementKey, found bool) {
	if s.newOwners == nil {
		s.newOwners = s.findNewOwners()
	}
	if owner, found = s.newOwners[id]; found {
		return owner, true
	}
	for p := range s.inv {
		w, told := s.works[p]
		if p != from && s.owns(p, id) && (w.Keep || !told) && (!found || p.String() < owner.String()) {
			owner, found = p, true
		}
	}
	return owner, found
}

func (s *session) findNewOwners() newOwners {
	out := newOwners{}
	for p, w := range s.works {
		for _, m := range w.Awaited {
			other, taken := out[m.ID]
			has, otherHas := s.owns(p, m.ID), s.owns(other, m.ID)
			if !taken || has && !otherHas || has == otherHas && p.String() < other.String() {
				out[m.ID] = p
			}
		}
	}
	return out
}

// handOver adds objects to the inventories of the placements that wait for them, before they
// are removed from the old inventories. It returns what is to be removed, without objects whose
// new inventory could not be written.
func (s *session) handOver(ctx context.Context, stales []stale, touched map[api.PlacementKey]bool) []stale {
	grown := map[api.PlacementKey][]api.ID{}
	for _, st := range stales {
		if st.newOwner == (api.PlacementKey{}) || s.owns(st.newOwner, st.item.ID()) {
			continue
		}
		it := *st.item
		it.Hash = "" // the new owner has yet to apply it
		s.inventory(st.newOwner).Items.Put(it)
		grown[st.newOwner] = append(grown[st.newOwner], it.ID())
	}
	failed := map[api.PlacementKey]bool{}
	for p, ids := range grown {
		inv := s.inv[p]
		inv.Abandon, touched[p] = s.works[p].Abandon, true
		if err := s.store.Save(ctx, inv); err != nil {
			s.cfg.Log.Warn("inventory not written; what others await stays where it is", "cluster", s.cfg.Name, "placement", p.String(), "err", err)
			for _, id := range ids {
				inv.Items.Drop(id)
			}
			failed[p] = true
		}
		faults.At("handed-over")
	}
	if len(failed) == 0 {
		return stales
	}
	kept := stales[:0]
	for _, st := range stales {
		if !failed[st.newOwner] {
			kept = append(kept, st)
		}
	}
	return kept
}
