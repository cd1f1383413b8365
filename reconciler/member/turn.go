package member

import (
	"context"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// run runs the session until ctx is done or the connection has to be closed, and stops
// everything it started before it returns.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.stop(cancel)
	err := s.start(ctx)
	for err == nil {
		woken := s.wait(ctx)
		if woken == byEnd {
			break
		}
		err = s.turn(ctx, woken)
	}
	return err
}

func (s *session) start(ctx context.Context) error {
	s.pauseSweep()
	s.prober.Start(ctx, s.health.UID)
	s.receiveFleet()
	s.logForeign()
	if s.observingOnly = s.store.Foreign(); s.observingOnly {
		s.schedule(foreignRetry)
	}
	defer s.turned(ctx)
	if s.last == nil {
		return nil
	}
	s.want(s.last)
	s.sync(ctx)
	return s.checkForeign(ctx)
}

// turned ends a turn. It reviews permissions if a request was refused, starts new watches, and
// drops data that only the turn needed.
func (s *session) turned(ctx context.Context) {
	s.review(ctx)
	s.watch.Begin()
	s.hidden = nil
}

func (s *session) stop(cancel context.CancelFunc) {
	s.prober.Stop()
	s.sweeping.timer.Stop()
	s.retry.Stop()
	s.pods.Stop()
	cancel()
	s.pods.Wait()
	s.prober.Wait()
	s.watch.Wait()
	select {
	case p := <-s.prober.Results:
		s.moveOn(p.Replaced)
	default:
	}
	s.conn.Close()
}

// A waking is the reason of a turn.
type waking int

const (
	byEnd waking = iota
	byLeave
	byFleet
	byWorks
	byResolution
	byCheck
	byChanges
	bySweep
	byRetry
	byProbe
)

// wait waits until there is something to do. The goroutine of a cluster spends nearly all of
// its time here.
func (s *session) wait(ctx context.Context) waking {
	leave, check := s.leave, s.Agent.check
	if s.leaving {
		leave = nil
	}
	if s.last == nil {
		check = nil // before the first works there is nothing to check
	}
	select {
	case <-ctx.Done():
		return byEnd
	case <-leave:
		return byLeave
	case s.membership = <-s.memberships:
		return byFleet
	case s.last = <-s.Agent.works:
		return byWorks
	case s.resolutions = <-s.resolving:
		return byResolution
	case <-check:
		return byCheck
	case <-s.watch.Changes.Wake:
		return byChanges
	case <-s.sweeping.timer.C:
		return bySweep
	case <-s.retry.C:
		return byRetry
	case s.found = <-s.prober.Results:
		return byProbe
	}
}

// turn processes one reason to run. An error ends the session.
func (s *session) turn(ctx context.Context, woken waking) error {
	defer s.turned(ctx)
	s.receiveFleet() // it is sent before the works that belong to it
	if s.store.Foreign() || s.observingOnly {
		return s.observeOnly(ctx, woken)
	}
	if err := s.act(ctx, woken); err != nil {
		return err
	}
	return s.checkForeign(ctx)
}

// act is turn on a cluster that no other fleet holds.
func (s *session) act(ctx context.Context, woken waking) error {
	switch woken {
	case byLeave:
		s.leaving = true
		s.retry.Reset(0)
	case byWorks:
		s.want(s.last)
		s.sync(ctx)
	case byResolution:
		s.resolve(ctx)
	case byCheck:
		s.recheck(ctx)
	case byChanges:
		return s.react(ctx)
	case bySweep:
		s.sweepOn(ctx)
	case byRetry:
		if !s.leaving {
			s.again(ctx)
		} else if s.leaveCluster(ctx) {
			s.endMembership(ctx)
		} else {
			s.schedule(inventoryRetry)
		}
	case byProbe:
		p := *s.found
		s.found = nil
		return s.probed(ctx, p)
	}
	return nil
}

// moveOn makes watches resume over a connection with the new credentials, and closes the other
// connections.
func (s *session) moveOn(replaced []*connection.Clients) {
	s.watch.Reconnect()
	for _, c := range replaced {
		c.Close()
	}
}
