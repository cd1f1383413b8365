// Package member reconciles one member cluster.
//
// An [Agent] gets the desired state of its cluster (Set), and reports the observed state. Run connects, and runs a session until its
// connection is lost. A session waits until something happens: new works, a change that a watch reports, a probe, a retry that is due.
// What it does about that (sync.go) leads to a pass (pass.go) over the objects that this concerns, in four steps:
//
//   - It observes. Packages watch, probe, discovery and pods read the cluster, and observed keeps what matters of objects. The
//     observer takes what watches have reported (recordChanges), and notes objects whose values have to be compared.
//   - It decides. For each object the applier gathers what is known (facts), and decide.Apply says what is done, or why nothing is.
//     drift.Of says whether it has drifted, and the driftRecorder what is done about that. decide.Delete decides about an object
//     that is no longer wanted, after the deletionBlocker has looked at all deletions together.
//   - It acts. An apply.Executor carries out the task of one object with as few requests as possible, and returns an outcome. It
//     changes no state, so that several run at a time. The pruner deletes (a removal), and recreate.go replaces (a recreation).
//   - It records. The recorder takes these outcomes: what is known of the object, its entry in the inventory, drift, the history,
//     and, if the object is not as it should be, why, and when it is tried again (progress.Failure).
//
// The first pass of a session is over everything (sync), and so is one in which something may have to be deleted. Later works
// cost what they change (syncWorks).
//
// A pass ends with writing the inventories. The reporter then sends the loop one protocol.WorkSeen for each placement
// that the pass touched. Objects that are as they should be cost no request, and are not in it.
//
// The files use only those below them, as follows:
//
//	preview.go, change.go                   what would change, without an agent
//	member.go                               from the connection to what a session is woken for
//	otherfleet.go, sync.go, pass.go         what is done then; a pass over some objects
//	session.go, access.go, report.go        the session, its permissions, and reports
//	agent.go                                what outlives a session
//	values.go, prune.go, recreate.go        values compared, also by sweeps; objects deleted and replaced
//	apply.go, observer.go                   objects applied; changes from the watches
//	record.go, journal.go, inventories.go   what is known afterwards, and stored
//	drift.go, blockeddeletion.go            what is done about drift, and which deletions are blocked
//	cluster.go, config.go, metrics.go       the cluster, settings and metrics
//
// One goroutine, that of Run, owns all state. What several parts read is kept by one of them, and the others have a read-only view of
// it:
//
//	desired.State      what placements should have      kept by the session, which replaces it with each Set
//	observed.Objects   the objects that are known       kept by the recorder
//	progress.State     what remains to be done          kept by the recorder
//	owned.State        what placements own              kept by the inventories
//	drift.State        what is recorded of drift        kept by the driftRecorder
//	deletion.Log       deletions to be reported         kept by the journal
//
// Each method of progress.State, owned.State or drift.State records one thing that has happened. Other parts call it through the part
// that keeps the state, such as record.progress.RetryAll. The deletionBlocker keeps which deletions are blocked, and the recorder tells
// it what became of them.
package member

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// budgetGrace is how long a session must have lasted so that a member which exceeds its budget afterwards is
// tried again as soon as after the first time.
const budgetGrace = 30 * time.Minute

// Run runs the agent until ctx is done, and stops everything it has started before it returns.
// A lost connection is not an error: it is reported and retried.
func (a *Agent) Run(ctx context.Context) {
	a.config.Metrics.begin(a.config.Name)
	defer a.config.Metrics.forget(a.config.Name)
	a.connection.Memory = a.config.Memory.Share()
	defer a.connection.Memory.Close()
	var lost, overBudget retry.Backoff
	for ctx.Err() == nil {
		s, err := a.arrive(ctx, lost)
		if err == nil {
			a.logAnswer(nil)
			lost = 0
			began := time.Now()
			err = s.run(ctx)
			if time.Since(began) > budgetGrace {
				overBudget = 0
			}
		}
		a.connection.Memory.Reset()
		if connection.IsExceeded(err) { // although the server answers, so that lost does not grow
			a.config.Metrics.OverBudget.Inc(a.config.Name)
			a.reportLost(ctx, connection.GivenUp(err), overBudget.Next(30*time.Second, 10*time.Minute))
			continue
		}
		a.reportLost(ctx, err, lost.Next(time.Second, 30*time.Second))
	}
}

// arrive opens a session. Arrivals limits how many clusters do so at once, except those that
// have lost their connection and retry slowly.
func (a *Agent) arrive(ctx context.Context, lost retry.Backoff) (*session, error) {
	if lost == 0 {
		defer acquireSlot(ctx, a.config.Arrivals, lateAnswer)()
	}
	return a.open(ctx)
}

// reportLost reports that there is no connection, and waits before the next attempt, unless ctx is
// done.
func (a *Agent) reportLost(ctx context.Context, err error, wait time.Duration) {
	if ctx.Err() != nil {
		return
	}
	a.logAnswer(err)
	seen := protocol.ClusterSeen{Cluster: a.config.Name, At: time.Now(), Error: connection.Cut(err.Error())}
	// A session that gives its connection up has had answers until then: the permissions are missing all the same.
	if _, ok := errors.AsType[*ForbiddenError](err); ok || errors.Is(err, errReconnect) {
		seen.Forbidden = a.access.Forbidden()
	}
	a.config.Report(seen)
	a.connection.SleepUntilRenewed(ctx, wait)
}

// open connects to the cluster and reads the inventories. It writes nothing.
func (a *Agent) open(ctx context.Context) (*session, error) {
	c, err := a.connection.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := a.newSession(c)
	reading, stopReading := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() {
		if s.health = s.prober.Probe(ctx, true); s.health.Err != nil {
			stopReading()
		}
	})
	err = s.inventories.load(reading)
	probing.Wait()
	stopReading()
	s.store.SetNamespaces(s.health.Namespaces)
	s.store.SetIdentity(s.health.UID)
	if err = cmp.Or(s.health.Err, err); err != nil {
		err = s.refusal(ctx, err)
		c.Close()
		return nil, err
	}
	s.access.Expire()
	s.reviewMissing(ctx)
	if s.rememberState(s.health) {
		if err := s.inventories.load(ctx); err != nil { // they were compared with those of the other cluster
			c.Close()
			return nil, err
		}
	}
	s.rememberSetBack(s.store.SetBack())
	s.reportInventories()
	s.introduced = true
	return s, nil
}

// run runs the session until ctx is done or the connection has to be closed, and stops
// everything it started before it returns.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.stop(cancel)
	err := s.start(ctx)
	for err == nil && ctx.Err() == nil {
		woken := s.wait(ctx)
		if woken == byEnd {
			break
		}
		err = s.handle(ctx, woken)
	}
	return err
}

func (s *session) start(ctx context.Context) error {
	s.sweeper.schedule()
	s.prober.Start(ctx, s.health.UID)
	s.receiveFleet()
	s.logClaimant(s.store, s.health.UID)
	if s.observingOnly = s.store.ClaimedByOther(); s.observingOnly {
		s.schedule(claimRetry)
	}
	defer s.afterHandling(ctx)
	if s.lastWorks == nil {
		return nil
	}
	s.setWorks(s.lastWorks)
	s.sync(ctx)
	return s.checkClaim(ctx)
}

// afterHandling is called after each call of handle. It reviews permissions if a request was refused, lets
// new watches be opened, and drops data that is not needed any more.
func (s *session) afterHandling(ctx context.Context) {
	s.review(ctx)
	s.watch.AllowOpen()
	s.desired.ForgetSecrets()
}

func (s *session) stop(cancel context.CancelFunc) {
	s.prober.Stop()
	s.sweeper.timer.Stop()
	s.retry.Stop()
	s.pods.Stop()
	cancel()
	s.pods.Wait()
	s.prober.Wait()
	s.watch.Wait()
	select {
	case p := <-s.prober.Results:
		moveOn(s.watch, p.Replaced)
	default:
	}
	s.conn.Close()
}

// wait waits until there is something to do. The goroutine of a cluster spends nearly all of
// its time here.
func (s *session) wait(ctx context.Context) wakeReason {
	leave, check := s.leave, s.check
	if s.leaving {
		leave = nil
	}
	if s.lastWorks == nil {
		check = nil // before the first works there is nothing to check
	}
	select {
	case <-ctx.Done():
		return byEnd
	case <-leave:
		return byLeave
	case s.membership = <-s.newMembership:
		return byFleet
	case s.lastWorks = <-s.newWorks:
		return byWorks
	case decisions := <-s.newDriftDecisions:
		s.drifts.state.Decided(decisions)
		return byDriftDecision
	case <-check:
		return byCheck
	case <-s.watch.Changes.Wake:
		return byChanges
	case <-s.sweeper.timer.C:
		return bySweep
	case <-s.retry.C:
		return byRetry
	case s.newProbe = <-s.prober.Results:
		return byProbe
	case s.job = <-s.Jobs.Requests:
		return byJob
	}
}

// handle does what the session was woken for. An error ends the session.
func (s *session) handle(ctx context.Context, woken wakeReason) error {
	defer s.afterHandling(ctx)
	if err := s.record.overBudget(); err != nil {
		if woken == byJob {
			s.job.Refuse("the connection is given up")
		}
		return err
	}
	s.receiveFleet() // it is sent before the works that belong to it
	if woken == byJob {
		runJob(ctx, s)
		return nil
	}
	if s.store.ClaimedByOther() || s.observingOnly {
		return s.observeOnly(ctx, woken)
	}
	if err := s.act(ctx, woken); err != nil {
		return err
	}
	return s.checkClaim(ctx)
}

// runJob runs the Job of a gate where the fleet may write.
func runJob(ctx context.Context, s *session) {
	switch {
	case s.leaving || s.lastWorks == nil || s.observingOnly || s.store.ClaimedByOther():
		s.job.Refuse("gitfleet does not write to the cluster at present")
	case s.conn.CutOff():
		s.job.Refuse("the API server does not answer")
	default:
		s.Jobs.Handle(ctx, s.conn, s.job)
	}
}

// act is handle on a cluster that no other fleet has claimed.
func (s *session) act(ctx context.Context, woken wakeReason) error {
	switch woken {
	case byLeave:
		s.leaving = true
		s.retry.Reset(0)
	case byWorks:
		before := s.Works()
		s.setWorks(s.lastWorks)
		s.syncWorks(ctx, before)
	case byDriftDecision:
		s.followDecisions(ctx)
	case byCheck:
		s.recheck(ctx)
	case byChanges:
		lost, err := s.processChanges(ctx)
		if lost {
			s.observingOnly = true
			return s.observeOnly(ctx, byCheck)
		}
		return err
	case bySweep:
		s.sweepStep(ctx)
	case byRetry:
		if s.leaving {
			s.leaveCluster(ctx)
		} else {
			s.retryDue(ctx)
		}
	case byProbe:
		p := *s.newProbe
		s.newProbe = nil
		return s.probed(ctx, p)
	}
	return nil
}
