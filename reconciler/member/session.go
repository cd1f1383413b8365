package member

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/content"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/gatejob"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// A session is one connection to the cluster and everything that is known through it. Only the goroutine
// of Agent.Run uses it. It decides when to act, and its parts act; the package comment says which part
// owns which state.
type session struct {
	*Agent
	*cluster
	desired.View
	owned    *ownership
	progress *progress
	// health is the result of the last probe.
	health probe.Result

	observer    *observer
	inventories *inventories
	history     *journal
	drifts      *driftRecorder
	brake       *deletionBrake
	record      *recorder
	applier     *applier
	pruner      *pruner
	values      *valueChecker
	sweeper     *sweeper
	reporter    *reporter

	expressions *availability.Expressions
	prober      *probe.Prober
	retry       *time.Timer
	found       *probe.Result // the newest, until it is processed
	job         gatejob.Request
	// observingOnly says that another fleet held the cluster, and nothing was written.
	observingOnly bool
	// reconciled says that the last pass was complete, so that every work is reconciled.
	reconciled bool
	// blocked says that the last pass could not be made, and unknown limits the log lines about
	// kinds that are not known.
	blocked bool
	unknown retry.LogLimiter
	// readNext is when unavailable objects that no watch reports are read again.
	readNext time.Time
	// introduced says that the inventories of the cluster were reported.
	introduced bool
	// leaving says that everything on this cluster is being released.
	leaving bool
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
	s.reportHoldings()
	s.introduced = true
	return s, nil
}

// newSession returns a session that has not sent a request yet.
func (a *Agent) newSession(conn *connection.Conn) *session {
	cfg := &a.config
	expressions := availability.New(&cfg.Encoder.Expressions)
	prober := probe.New(conn, probe.Config{
		Cluster: cfg.Name, Interval: cfg.Probe, Observe: cfg.Observe, Pace: cfg.Pace, Seconds: cfg.Metrics.ProbeSeconds, Log: cfg.Log, Publish: a.publishProbe,
		UID: a.uid, Version: a.version,
	})
	objects := &observed.Objects{}
	c := &cluster{cfg: cfg, conn: conn, kinds: discovery.New(conn.Discovery), live: objects.View()}
	c.finder = discovery.NewFinder(conn, c.kinds)
	c.watch = watch.New(conn, watch.Config{
		Cluster: cfg.Name, Restarts: cfg.Metrics.WatchRestarts, Log: cfg.Log, Expressions: expressions, Interrupted: prober.SuspectRestore,
	})
	c.pods = pods.New(conn, pods.Config{Cluster: cfg.Name, FailureTimeout: cfg.PodFailureTimeout, Wake: c.watch.Changes.Notify, Log: cfg.Log})
	state := &desired.State{}
	as := state.View()
	o := &ownership{View: as, desired: state}
	c.store = inventory.NewStore(conn, a.membership, inventory.Config{
		Cluster: cfg.Name, Fleet: cfg.Fleet, HasCommit: cfg.HasCommit, Live: objects, Serials: &a.serials, Log: cfg.Log,
	})
	p := &progress{
		failed: map[api.ID]*failure{}, verified: map[api.ID]observed.OwnershipState{},
		suspects: map[api.ID]bool{}, unprocessed: map[api.ID]bool{}, replaced: map[api.ID]*apply.Snapshot{},
		ended: map[api.PlacementKey]bool{}, cutShort: map[api.ID]bool{}, waiting: waitingDeletions{}, pruned: map[api.PlacementKey]bool{},
	}
	s := &session{Agent: a, cluster: c, View: as, owned: o, progress: p, expressions: expressions, prober: prober, retry: time.NewTimer(0)}
	s.retry.Stop()
	s.inventories = &inventories{cluster: c, View: as, owned: o, progress: p}
	s.history = &journal{cluster: c, View: as, progress: p, deletions: a.deletions}
	s.drifts = &driftRecorder{cluster: c, View: as, progress: p, driftState: &a.drifted}
	s.brake = &deletionBrake{cluster: c, View: as, owned: o, progress: p, braked: map[api.ID]braked{}}
	s.record = &recorder{
		cluster: c, View: as, owned: o, progress: p, brake: s.brake, drifts: s.drifts, history: s.history, superseded: &a.superseded, objects: objects, fresh: map[string]bool{}, written: &a.written,
	}
	s.observer = &observer{cluster: c, View: as, owned: o, progress: p, record: s.record}
	s.applier = &applier{cluster: c, View: as, owned: o, progress: p, brake: s.brake, drifts: s.drifts, inventories: s.inventories, record: s.record}
	s.pruner = &pruner{
		cluster: c, View: as, owned: o, progress: p, brake: s.brake, inventories: s.inventories, record: s.record,
		content: &content.Checker{Conn: conn, Fleet: cfg.Fleet, Owns: o.lists, Timeout: cfg.Timeout},
	}
	s.values = &valueChecker{cluster: c, View: as, progress: p, applier: s.applier, drifts: s.drifts}
	s.sweeper = newSweeper(s.values)
	s.reporter = &reporter{
		cluster: c, View: as, owned: o, progress: p, brake: s.brake, drifts: s.drifts, deletions: a.deletions, written: &a.written, serials: &a.serials,
	}
	return s
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
	s.logHolder(s.store, s.health.UID)
	if s.observingOnly = s.store.HeldByOther(); s.observingOnly {
		s.schedule(holderRetry)
	}
	defer s.handled(ctx)
	if s.last == nil {
		return nil
	}
	s.setWorks(s.last)
	s.sync(ctx)
	return s.checkHolder(ctx)
}

// handled is called after each call of handle. It reviews permissions if a request was refused, lets
// new watches be opened, and drops data that is not needed any more.
func (s *session) handled(ctx context.Context) {
	s.review(ctx)
	s.watch.AllowOpen()
	s.owned.desired.ForgetSecrets()
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

// A wakeReason is what a session has to handle.
type wakeReason int

const (
	byEnd wakeReason = iota
	byLeave
	byFleet
	byWorks
	byDriftDecision
	byCheck
	byChanges
	bySweep
	byRetry
	byProbe
	byJob
)

// wait waits until there is something to do. The goroutine of a cluster spends nearly all of
// its time here.
func (s *session) wait(ctx context.Context) wakeReason {
	leave, check := s.leave, s.check
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
	case s.membership = <-s.newMembership:
		return byFleet
	case s.last = <-s.newWorks:
		return byWorks
	case s.drifts.decisions = <-s.newDriftDecisions:
		return byDriftDecision
	case <-check:
		return byCheck
	case <-s.watch.Changes.Wake:
		return byChanges
	case <-s.sweeper.timer.C:
		return bySweep
	case <-s.retry.C:
		return byRetry
	case s.found = <-s.prober.Results:
		return byProbe
	case s.job = <-s.Jobs.Requests:
		return byJob
	}
}

// handle does what the session was woken for. An error ends the session.
func (s *session) handle(ctx context.Context, woken wakeReason) error {
	defer s.handled(ctx)
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
	if s.store.HeldByOther() || s.observingOnly {
		return s.observeOnly(ctx, woken)
	}
	if err := s.act(ctx, woken); err != nil {
		return err
	}
	return s.checkHolder(ctx)
}

// runJob runs the Job of a gate where the fleet may write.
func runJob(ctx context.Context, s *session) {
	switch {
	case s.leaving || s.last == nil || s.observingOnly || s.store.HeldByOther():
		s.job.Refuse("gitfleet does not write to the cluster at present")
	case s.conn.CutOff():
		s.job.Refuse("the API server does not answer")
	default:
		s.Jobs.Handle(ctx, s.conn, s.job)
	}
}

// act is handle on a cluster that no other fleet holds.
func (s *session) act(ctx context.Context, woken wakeReason) error {
	switch woken {
	case byLeave:
		s.leaving = true
		s.retry.Reset(0)
	case byWorks:
		before := s.Works()
		s.setWorks(s.last)
		s.syncWorks(ctx, before)
	case byDriftDecision:
		s.resolve(ctx)
	case byCheck:
		s.recheck(ctx)
	case byChanges:
		return s.processChanges(ctx)
	case bySweep:
		s.sweepOn(ctx)
	case byRetry:
		if s.leaving {
			s.leaveCluster(ctx)
		} else {
			s.retryDue(ctx)
		}
	case byProbe:
		p := *s.found
		s.found = nil
		return s.probed(ctx, p)
	}
	return nil
}

// setWorks replaces the desired state of the cluster.
func (s *session) setWorks(works []*work.Work) {
	was, before := s.Works(), s.Wanted()
	if len(was) == 0 {
		s.progress.suspect(slices.Collect(s.drifts.left())...)
	}
	for _, w := range works {
		old, ok := was.Find(w.Placement)
		if !ok || old.Revision != w.Revision || (old.Strategy.Type == api.ReportDiff) != (w.Strategy.Type == api.ReportDiff) {
			s.progress.undone(w.Placement)
		}
		if ok && old != w {
			s.progress.reconsider(old, w)
		}
	}
	s.owned.setWorks(works)
	s.record.superseded.update(s.owned)
	s.expressions.Replace(s.Wanted().Manifests())
	for id := range s.progress.failed {
		w, isWanted := s.Wanted().Of(id)
		if old, _ := before.Of(id); !isWanted || w.Placement != old.Placement {
			s.record.settled(id) // that was the failure of another placement
		}
	}
	s.drifts.memory.Forget(s.Works().Find)
	s.drifts.additions.Forget(s.Works().Find)
	s.progress.suspect(slices.Collect(s.drifts.otherRules())...)
}

// syncWorks reconciles and reports only what differs between the new works and those before, so that a new work costs what it changes.
// It makes a full pass instead if the last pass was not complete, if something may have to be deleted, which is decided for all objects
// together, or if works were skipped. All other objects are as desired, or have a retry or a watch event pending.
func (s *session) syncWorks(ctx context.Context, before desired.Works) {
	changed := s.Works().ChangedSince(before)
	ids := s.owned.objectsOf(changed, before)
	for id := range s.progress.failed {
		ids[id] = true // a new work may have what it waits for
	}
	for p := range s.drifts.memory {
		for id := range s.drifts.memory[p] {
			ids[id] = true // what is held may have come to its end
		}
	}
	skipped := s.skipped.Swap(false)
	if skipped || !s.reconciled || s.blocked || s.unlisted || s.leaving || len(s.brake.braked) > 0 || len(s.brake.recreations()) > 0 || s.owned.anyStale() {
		s.sync(ctx)
		return
	}
	if s.reconcile(ctx, ids) {
		s.reporter.some(ctx, changed, ids)
	}
}

// objectsOf returns the objects that some placements want, wait for or list, or have done so before.
func (o *ownership) objectsOf(placements map[api.PlacementKey]bool, before desired.Works) map[api.ID]bool {
	ids := map[api.ID]bool{}
	for p := range placements {
		for _, w := range []*work.Work{before.Of(p), o.Works().Of(p)} {
			for _, list := range [][]*work.Manifest{w.Manifests, w.Awaited} {
				for _, m := range list {
					ids[m.ID] = true
				}
			}
		}
		if inv := o.inv.Of(p); inv != nil {
			for id := range inv.Items.IDs() {
				ids[id] = true
			}
		}
	}
	return ids
}

// anyStale reports whether an inventory lists an object that its placement no longer wants.
func (o *ownership) anyStale() bool {
	for _, inv := range o.inv {
		p := inv.Placement()
		for id := range inv.Items.IDs() {
			if w, isWanted := o.Wanted().Of(id); isWanted && w.Placement == p {
				continue
			}
			if len(o.stales(id)) > 0 {
				return true
			}
		}
	}
	return false
}

// moveOn makes watches resume over a connection with the new credentials, and closes the other
// connections.
func moveOn(w *watch.Set, replaced []*connection.Clients) {
	w.Reconnect()
	for _, c := range replaced {
		c.Close()
	}
}

// leaveCluster releases everything that we have on the cluster. What fails is retried later.
func (s *session) leaveCluster(ctx context.Context) {
	s.owned.releaseAll()
	s.sync(ctx)
	if len(s.owned.inv) > 0 || s.store.DeleteClaim(ctx) != nil {
		s.schedule(inventoryRetry)
		return
	}
	s.endMembership(ctx)
}

// endMembership ends the membership of a cluster on which there is nothing of ours to release. It
// returns when ctx is done, and the session must not handle anything after it.
func (s *session) endMembership(ctx context.Context) {
	close(s.left)
	s.cfg.Report(s.health.Seen(s.cfg.Name)) // wakes those who wait for a report
	<-ctx.Done()
}
