package member

import (
	"cmp"
	"context"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Two daemons with the same fleet name see each other's inventories as their own. They are
// distinguished by the fleet's ID, which every inventory and the claim have. If a cluster has
// an inventory or a claim with another ID, nothing is written there: no object, no label, no
// inventory, no namespace.
//
// The same holds for a cluster that another member of this fleet holds, and for one that the fleet
// has not identified yet, for example because the kubeconfig leads to another cluster since.

// foreignRetry is the time between two checks whether another fleet still holds the cluster.
const foreignRetry = time.Minute

// receiveFleet uses the membership of the last call of SetMembership.
func (s *session) receiveFleet() {
	select {
	case s.membership = <-s.newMembership:
	default:
	}
	s.store.SetMembership(s.membership)
}

// observeOnly replaces act on a cluster that another fleet holds. It writes nothing. Once no
// other fleet holds the cluster, everything is reconciled.
func (s *session) observeOnly(ctx context.Context, woken wakeReason) error {
	look := !s.store.HeldByOther() // a new membership says that the cluster is ours
	switch woken {
	case byLeave:
		s.leaving = true
	case byWorks:
		s.setWorks(s.last)
	case byChanges:
		look = len(s.store.WrittenByOthers(s.observer.recordChanges())) > 0 || look
	case byCheck, byRetry:
		look = true
	case bySweep:
		s.sweeper.schedule()
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
		// Everything is read and reported again, as if the cluster were new.
		s.progress.forgetAll()
		if err := s.inventories.load(ctx); err != nil {
			return reconnect(err)
		}
		s.reportHoldings()
	}
	s.logForeign()
	s.observingOnly = s.store.HeldByOther()
	if s.observingOnly {
		s.schedule(foreignRetry)
	} else if s.last != nil {
		s.sync(ctx)
	}
	return nil
}

// checkForeign begins to observe only if the last pass has found that another fleet has claimed the
// cluster.
func (s *session) checkForeign(ctx context.Context) error {
	if !s.store.HeldByOther() || s.observingOnly {
		return nil
	}
	s.observingOnly = true
	return s.observeOnly(ctx, byCheck)
}

// logForeign logs that another fleet holds the cluster, or no longer does.
func (s *session) logForeign() {
	switch holder := s.store.OtherMember(); {
	case !s.store.HeldByOther() && s.foreignLog != (retry.LogLimiter{}):
		s.foreignLog = retry.LogLimiter{}
		s.cfg.Log.Info("cluster is not held by another fleet or member any more", "cluster", s.cfg.Name)
	case holder != "":
		if s.foreignLog.Due(holder) {
			s.cfg.Log.Error("another member of the fleet is the same cluster and holds it; nothing is written to it under this name",
				"cluster", s.cfg.Name, "holder", holder, "uid", s.health.UID)
		}
	default:
		for _, o := range s.store.Holders() {
			if s.foreignLog.Due(o.ID) {
				s.cfg.Log.Error("cluster is held by another fleet of the same name; nothing is written to it",
					"cluster", s.cfg.Name, "fleet", s.cfg.Fleet, "holder", cmp.Or(o.ID, protocol.NoID), "source", o.Source)
			}
		}
	}
}
