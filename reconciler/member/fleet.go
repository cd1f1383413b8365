package member

import (
	"cmp"
	"context"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// Two daemons with the same fleet name see each other's inventories as their own. They are
// distinguished by the fleet's ID, which every inventory and the claim have. If a cluster has
// an inventory or a claim with another ID, nothing is written there: no object, no label, no
// inventory, no namespace.

// SetFleet sets the fleet of the agent, and the fleets whose inventories it takes over. If the
// cluster has an inventory of any other fleet, the agent writes nothing. It never blocks; only
// the goroutine that calls Set may call it. Until it is called, the agent treats every
// inventory with its fleet name as its own.
func (a *Agent) SetFleet(f ledger.Fleet, adopted []ledger.Adoption) {
	select {
	case <-a.memberships:
	default:
	}
	a.memberships <- inventory.Membership{Fleet: f, Adopted: adopted}
}

// receiveFleet uses the membership of the last call of SetFleet.
func (s *session) receiveFleet() {
	select {
	case s.membership = <-s.memberships:
	default:
	}
	s.store.SetMembership(s.membership)
}

// mayWrite reports whether no other fleet holds the cluster. It marks adopted inventories, so
// that deletions of their objects are held from the first pass on.
func (s *session) mayWrite() bool {
	if s.store.Foreign() {
		return false
	}
	for _, inv := range s.inv {
		s.store.Adopt(inv)
	}
	return true
}

// foreignRetry is the time between two checks whether another fleet still holds the cluster.
const foreignRetry = time.Minute

// observeOnly replaces a turn on a cluster that another fleet holds. It writes nothing. Once no
// other fleet holds the cluster, everything is reconciled.
func (s *session) observeOnly(ctx context.Context, woken waking) error {
	look := !s.store.Foreign() // a new membership says that the cluster is ours
	switch woken {
	case byLeave:
		s.leaving = true
	case byWorks:
		s.want(s.last)
	case byChanges:
		look = len(s.store.WrittenByOthers(s.absorb())) > 0 || look
	case byCheck, byRetry:
		look = true
	case bySweep:
		s.pauseSweep()
	case byProbe:
		p := *s.found
		s.found = nil
		if err := s.probed(ctx, p); err != nil {
			return err
		}
	}
	switch {
	case s.leaving:
		s.endMembership(ctx) // there is nothing of ours to release
		return nil
	case look:
		if err := s.reload(ctx); err != nil {
			return err
		}
	}
	s.logForeign()
	s.observingOnly = s.store.Foreign()
	if s.observingOnly {
		s.schedule(foreignRetry)
	} else if s.last != nil {
		s.sync(ctx)
	}
	return nil
}

// checkForeign begins to observe only if this turn has found that another fleet has claimed the
// cluster.
func (s *session) checkForeign(ctx context.Context) error {
	if !s.store.Foreign() || s.observingOnly {
		return nil
	}
	s.observingOnly = true
	return s.observeOnly(ctx, byCheck)
}

// reload reads all inventories again, forgets the state of all objects, and reports the owners
// of the inventories.
func (s *session) reload(ctx context.Context) error {
	clear(s.verified)
	clear(s.trouble)
	clear(s.done)
	if err := s.loadInventories(ctx); err != nil {
		return reconnect(err)
	}
	s.cfg.Report(s.clusterReport())
	return nil
}

// clusterReport returns the report of a session that has read the inventories.
func (s *session) clusterReport() ledger.ClusterSeen {
	seen := s.seen(s.health)
	seen.At, seen.Owners = time.Now(), s.store.Owners()
	for p, inv := range s.inv {
		seen.Holds = append(seen.Holds, ledger.Held{Placement: p, Revision: inv.Revision, Abandon: inv.Abandon})
	}
	return seen
}

// logForeign logs that another fleet holds the cluster, or no longer does.
func (s *session) logForeign() {
	switch {
	case !s.store.Foreign() && s.heldBy != (retry.LogLimiter{}):
		s.heldBy = retry.LogLimiter{}
		s.cfg.Log.Info("cluster is not held by another fleet any more", "cluster", s.cfg.Name)
	default:
		for _, o := range s.store.Holders() {
			if s.heldBy.Due(o.ID) {
				s.cfg.Log.Error("cluster is held by another fleet of the same name; nothing is written to it",
					"cluster", s.cfg.Name, "fleet", s.cfg.Fleet, "holder", cmp.Or(o.ID, ledger.NoID), "source", o.Source)
			}
		}
	}
}

// reportOwners reports the owners of the inventories if they have changed.
func (s *session) reportOwners() {
	if s.store.UpdateOwners(s.inv) {
		seen := s.clusterReport()
		seen.Holds = nil
		s.cfg.Report(seen)
	}
}

// adoptedWhy is the reason why an object of an adopted inventory is not deleted.
const adoptedWhy = "it was taken over from another fleet (gitfleet adopt-fleet), and is not in the repository"

// finishAdoption removes the mark of an adopted inventory once all of its objects are desired.
func (s *session) finishAdoption(inv *inventory.Inventory) {
	if !inv.Adopted || !s.complete(inv.Placement) {
		return
	}
	for id := range inv.Items.IDs() {
		if w, ok := s.wanted.of(id); !ok || w.placement != inv.Placement {
			return
		}
	}
	inv.Adopted = false
}

// endMembership ends the membership of a cluster on which there is nothing of ours to release.
func (s *session) endMembership(ctx context.Context) {
	close(s.left)
	s.cfg.Report(s.health.Seen(s.cfg.Name)) // wakes those who wait for a report
	<-ctx.Done()
}
