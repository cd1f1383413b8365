package member

import (
	"context"
	"maps"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// process reconciles some objects: it applies those that differ from the desired state, removes
// those that are not desired any more, and updates the inventories. Objects that are up to date
// cost no request. It adds to ids what prepared adds.
func (s *session) process(ctx context.Context, ids map[api.ID]bool) {
	if s.prepared(ctx, ids) {
		s.processPrepared(ctx, ids)
	}
}

// prepared makes sure that the live state of some objects is known. It adds to ids the objects that
// have waited for one of their kinds; see observer.addWaiting. If the state cannot be read now,
// everything is tried again later: while kinds are unknown, it is not known either which objects
// are gone.
func (s *session) prepared(ctx context.Context, ids map[api.ID]bool) bool {
	if len(ids) == 0 || s.store.ClaimedByOther() {
		return false
	}
	err := s.observer.prepareKinds(ctx, ids)
	if err == nil {
		s.unknown = retry.LogLimiter{}
		return true
	}
	if s.unknown.Due(connection.WithoutPort(connection.Plain(err))) {
		s.cfg.Log.Warn("kinds not known; trying again", "cluster", s.cfg.Name, "err", connection.Plain(err))
	}
	s.record.progress.Postpone(ids)
	s.postponed = true
	s.schedule(inventoryRetry)
	return false
}

// largePass is the number of objects to be applied from which a pass counts for the common limit, and longPass is how long it does:
// a slow cluster must not delay all others.
const (
	largePass = 20
	longPass  = 10 * time.Second
)

// processPrepared is process for objects whose live state is known.
func (s *session) processPrepared(ctx context.Context, ids map[api.ID]bool) {
	outdated := s.applier.outdated(ids)
	if outdated >= largePass {
		defer acquireSlot(ctx, s.cfg.Passes, longPass)()
	}
	touched := s.record.begin()
	for _, id := range s.applier.waitingForHooks(maps.Keys(ids)) {
		ids[id] = s.record.progress.RetryNow(id)
	}
	tasks, prune := s.applier.findTasks(ids, outdated)
	tasks, failed := s.inventories.announce(ctx, tasks, touched)
	if s.store.ClaimedByOther() {
		return // checkClaim follows
	}
	for _, o := range failed {
		s.record.failure(o)
	}
	s.applier.namespaces = s.health.Namespaces
	s.applier.apply(ctx, tasks, touched)
	s.applier.retryHooks(tasks)
	if s.applier.recreate(ctx, tasks, touched); s.store.ClaimedByOther() {
		return
	}
	if s.pruner.prune(ctx, prune, touched); s.store.ClaimedByOther() {
		return
	}
	s.saveInventories(ctx, touched)
	if len(s.record.fresh) > 0 {
		s.prober.NamespaceCreated()
	}
	if outdated >= largePass && outdated-s.applier.outdated(ids) >= largePass { // what was only compared or refused fills no connection
		s.filled = time.Now()
	}
	s.reschedule()
}

// saveInventories writes the inventories that have changed. If their owners have changed, it
// reports them.
func (s *session) saveInventories(ctx context.Context, touched map[api.PlacementKey]bool) {
	if s.inventories.save(ctx, touched) {
		s.reportCluster()
	}
}

// checkSuspects compares the values of objects that others have written, and reverts what they
// changed.
func (s *session) checkSuspects(ctx context.Context) {
	if s.conn.CutOff() || s.leaving {
		return
	}
	switch tasks := s.values.tasks(); {
	case len(tasks) > manySuspects:
		s.sweepAll(ctx)
	case len(tasks) > 0:
		s.handleValueResults(ctx, s.values.check(ctx, tasks))
	}
}

// handleValueResults applies objects again whose values have changed although their metadata does not show
// it, and reports them and those whose recorded drift has changed.
func (s *session) handleValueResults(ctx context.Context, results valueResults) {
	for id := range results.changed {
		s.record.changedValues(id)
	}
	s.process(ctx, results.changed)
	maps.Copy(results.changed, results.news)
	if len(results.changed) > 0 {
		s.reporter.touched(ctx, results.changed)
	}
	if s.progress.HasSuspects() {
		s.reschedule()
	}
}

// sweepStep runs one step of a sweep: it checks what no watch has reported and lists one more kind.
func (s *session) sweepStep(ctx context.Context) {
	defer s.sweeper.schedule()
	if s.conn.CutOff() || s.leaving || s.postponed {
		return
	}
	if !s.sweeper.busy {
		s.sweeper.begin()
	}
	s.handleValueResults(ctx, valueResults{changed: s.sweeper.confirmUnreported(ctx)})
	if gvk, more := s.sweeper.next(); more {
		s.handleValueResults(ctx, s.sweeper.checkKind(ctx, gvk))
	}
}

// sweepAll runs a whole sweep, because a user requested it or because very much was written.
// What no watch has reported is checked in the next step.
func (s *session) sweepAll(ctx context.Context) {
	s.sweeper.busy, s.sweeper.remaining = true, nil
	for _, gvk := range s.sweeper.watchedKinds() {
		if s.conn.CutOff() {
			break
		}
		s.handleValueResults(ctx, s.sweeper.checkKind(ctx, gvk))
	}
	s.sweeper.schedule()
}
