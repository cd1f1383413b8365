package member

import (
	"context"
	"time"
)

// Fleet names need not be unique, so every inventory and the claim of a cluster record the ID of the
// fleet. A session writes nothing to a cluster whose inventories or claim have another ID: no object,
// label, inventory or namespace.
//
// Nor does it write to a cluster that another member of this fleet has claimed, or whose identity is not
// confirmed, for example because the kubeconfig now leads to another cluster.

// claimRetry is the time between two checks whether another fleet still claims the cluster.
const claimRetry = time.Minute

// receiveFleet uses the membership of the last call of SetMembership.
func (s *session) receiveFleet() {
	select {
	case s.membership = <-s.newMembership:
	default:
	}
	s.store.SetMembership(s.membership)
}

// observeOnly replaces act on a cluster that another fleet has claimed. It writes nothing. Once no
// other fleet claims the cluster, everything is reconciled.
func (s *session) observeOnly(ctx context.Context, woken wakeReason) error {
	look := !s.store.ClaimedByOther() // a new membership says that the cluster is ours
	switch woken {
	case byLeave:
		s.leaving = true
	case byWorks:
		s.setWorks(s.lastWorks)
	case byChanges:
		look = len(s.store.WrittenByOthers(s.observer.recordChanges())) > 0 || look
	case byCheck, byRetry:
		look = true
	case bySweep:
		s.sweeper.schedule()
	case byProbe:
		p := *s.newProbe
		s.newProbe = nil
		if err := s.probed(ctx, p); err != nil {
			return err
		}
	}
	switch {
	case s.leaving:
		s.endMembership(ctx) // there is nothing of ours to release
		return nil
	case look:
		// Everything is read and reported again, as if the cluster were new.
		s.record.progress.StartOver(s.Works())
		if err := s.inventories.load(ctx); err != nil {
			return reconnect(err)
		}
		s.reportInventories()
	}
	s.logClaimant(s.store, s.health.UID)
	s.observingOnly = s.store.ClaimedByOther()
	if s.observingOnly {
		s.schedule(claimRetry)
	} else if s.lastWorks != nil {
		s.sync(ctx)
	}
	return nil
}

// checkClaim begins to observe only if the last pass has found that another fleet has claimed the
// cluster.
func (s *session) checkClaim(ctx context.Context) error {
	if !s.store.ClaimedByOther() || s.observingOnly {
		return nil
	}
	s.observingOnly = true
	return s.observeOnly(ctx, byCheck)
}
