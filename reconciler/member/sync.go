package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/member/unlisted"
)

// sync reconciles everything.
func (s *session) sync(ctx context.Context) {
	if s.reconcile(ctx, nil) {
		s.reporter.all(ctx)
	}
}

// reconcile reconciles some objects, or everything if ids is nil: only then does the brake decide which deletions are held. It reports
// whether the cluster is still ours.
func (s *session) reconcile(ctx context.Context, ids map[api.ID]bool) bool {
	if s.store.HeldByOther() {
		return false
	}
	for _, inv := range s.owned.inv {
		s.store.Adopt(inv) // deletions of objects of adopted inventories are held from now on
	}
	if s.inventories.renameClaim(ctx) {
		s.reportCluster()
	}
	s.addUnlisted(ctx)
	everything := ids == nil
	if everything {
		ids = s.owned.inventoried()
		for id := range s.Wanted().All() {
			ids[id] = true
		}
		s.progress.compared = time.Now()
	}
	s.blocked, s.reconciled = false, false
	if len(ids) == 0 {
		s.saveInventories(ctx, map[api.PlacementKey]bool{}) // an empty inventory may have to be removed
		s.reschedule()
	} else if s.prepared(ctx, ids) {
		if everything { // the brake needs the state from the watches
			s.brake.decide(ids, s.brake.deletes, s.brake.recreations())
		}
		s.processPrepared(ctx, ids)
		if s.store.HeldByOther() {
			return false
		}
		s.checkSuspects(ctx)
	}
	s.observer.unwatch()
	if s.reconciled = ctx.Err() == nil && !s.conn.CutOff() && !s.blocked; s.reconciled {
		s.progress.allDone()
	}
	return true
}

// searchInterval is the minimum time between two searches for objects that inventories do not list.
const searchInterval = 5 * time.Minute

// addUnlisted adds to inventories what they do not list although it is ours, after they were deleted or
// set back: what Git no longer has could not be deleted otherwise.
func (s *session) addUnlisted(ctx context.Context) {
	if !s.unlisted || time.Since(s.searched) < searchInterval {
		return
	}
	found, again, err := unlisted.Find(ctx, s.conn, s.cfg.Fleet, s.cfg.Timeout)
	if ctx.Err() != nil {
		return // it is still due
	}
	s.searched = time.Now()
	if connection.IsExceeded(err) {
		s.watch.Changes.Exceed(err) // which ends the session
		return
	}
	if err != nil {
		s.cfg.Log.Warn("not all objects were found that inventories should list; those of other kinds are not deleted", "again", again, "cluster", s.cfg.Name, "err", err)
	}
	if s.unlisted = again; s.inventories.add(found) {
		s.reportHoldings()
	}
	if !again {
		for _, p := range s.store.SetBack() {
			if s.owned.inv.Of(p) == nil && len(s.Works().Of(p).Manifests) == 0 {
				inventory.Forget(s.store, p)
			}
		}
	}
}

// recheck checks everything again because a user requested it.
func (s *session) recheck(ctx context.Context) {
	s.searched = time.Time{}
	s.progress.retryAll()
	s.kinds.RetryLookups(nil)
	s.progress.forgetVerified()
	if s.last != nil && !s.leaving {
		s.sync(ctx)
		s.sweepNow(ctx)
	}
}

// processChanges processes the changes that the watches reported.
func (s *session) processChanges(ctx context.Context) error {
	if why := s.watch.Changes.Restored(); why != "" {
		s.restored = cmp.Or(s.restored, why)
		return reconnect(errors.New(why))
	}
	touched := s.observer.recordChanges()
	if s.store.LostToOther(ctx, touched) {
		s.observingOnly = true
		return s.observeOnly(ctx, byCheck)
	}
	s.inventories.restore(ctx, touched)
	s.observer.retryWaiting(touched)
	s.brake.recheckHeld(touched)
	s.process(ctx, touched)
	s.checkSuspects(ctx)
	s.reporter.touched(ctx, touched)
	s.reporter.askWhy(ctx)
	return nil
}

// retryDue retries the failures that are due.
func (s *session) retryDue(ctx context.Context) {
	s.reviewMissing(ctx)
	if s.blocked {
		s.sync(ctx)
		return
	}
	due := map[api.ID]bool{}
	now := time.Now()
	for id, t := range s.progress.failed {
		if !t.next.After(now) {
			due[id] = true
		}
	}
	for id, b := range s.brake.braked {
		if !b.next.IsZero() && !b.next.After(now) {
			due[id] = true
		}
	}
	for w, at := range s.drifts.repeatedRemovals() {
		if !at.After(now) {
			due[w.Manifest.ID] = true
		}
	}
	unwritten := map[api.PlacementKey]bool{}
	for _, inv := range s.owned.inv {
		if s.inventories.unwritten(inv) {
			unwritten[inv.Placement()] = true
		}
	}
	if len(unwritten) > 0 {
		s.saveInventories(ctx, unwritten)
	}
	if !now.Before(s.readNext) {
		s.readNext = now.Add(unfollowedInterval)
		for _, id := range slices.Collect(s.applier.unfollowed()) {
			s.record.read(id, nil) // so that it is read
			due[id] = true
		}
	}
	if !now.Before(s.progress.compared.Add(reportInterval)) {
		s.progress.compared = now
		for id, w := range s.Wanted().All() {
			if s.Works().OnlyCompares(w.Placement) {
				due[id] = true
			}
		}
	}
	s.process(ctx, due)
	if !s.values.compareNext.After(now) {
		s.checkSuspects(ctx)
	}
	s.reschedule()
	s.reporter.touched(ctx, due)
}

// inventoryRetry is the time between two attempts to write an inventory.
const inventoryRetry = 2 * time.Second

// schedule makes sure that again is called within d.
func (s *session) schedule(d time.Duration) { s.retry.Reset(max(d, time.Millisecond)) }

// reschedule sets the timer to the earliest retry. While the cluster is being left, or after a pass
// that could not be made, the timer is already set.
func (s *session) reschedule() {
	if s.leaving || s.blocked {
		return
	}
	var first time.Time
	for _, t := range s.progress.failed {
		first = retry.Earlier(first, t.next)
	}
	for _, b := range s.brake.braked {
		if !b.next.IsZero() {
			first = retry.Earlier(first, b.next)
		}
	}
	for _, inv := range s.owned.inv {
		if s.inventories.unwritten(inv) {
			first = retry.Earlier(first, time.Now().Add(inventoryRetry))
		}
	}
	if len(s.progress.suspects) > 0 {
		first = retry.Earlier(first, time.Now().Add(max(valuesRetry, time.Until(s.values.compareNext))))
	}
	for _, at := range s.drifts.repeatedRemovals() {
		if at.After(time.Now()) {
			first = retry.Earlier(first, at)
		}
	}
	for _, w := range s.Works() {
		if s.Works().OnlyCompares(w.Placement) {
			first = retry.Earlier(first, s.progress.compared.Add(reportInterval))
		}
	}
	for range s.applier.unfollowed() {
		first = retry.Earlier(first, retry.Later(s.readNext, time.Now().Add(time.Second)))
		break
	}
	if len(s.access.Missing()) > 0 {
		first = retry.Earlier(first, s.access.NextRetry())
	}
	if first.IsZero() {
		s.retry.Stop()
		return
	}
	s.schedule(time.Until(first))
}

// unfollowedInterval is the time between two reads of objects that are not available, and that no
// watch reports.
const unfollowedInterval = 30 * time.Second

// setBackInterval is the least time between two sessions that end because inventories are missing or
// earlier ones: a server may lose whatever is written.
const setBackInterval = 10 * time.Minute

// probed processes the result of a probe. A cluster that answers again is reconciled at once.
func (s *session) probed(ctx context.Context, p probe.Result) error {
	before := s.health
	s.health = p
	if p.UID != "" && before.UID != "" && p.UID != before.UID {
		return reconnect(fmt.Errorf("the cluster behind this name is another one now (kube-system UID %s, was %s)", p.UID, before.UID))
	}
	if p.UID == "" {
		s.health.UID = before.UID
	}
	if p.Namespaces == nil {
		s.health.Namespaces = before.Namespaces
	}
	s.store.SetNamespaces(s.health.Namespaces)
	s.store.SetIdentity(s.health.UID)
	if p.Another != nil {
		return reconnect(p.Another)
	}
	if s.rememberState(p); s.restored != "" {
		return reconnect(errors.New(s.restored))
	}
	if len(p.Replaced) > 0 {
		moveOn(s.watch, p.Replaced)
	}
	if p.Unauthorized {
		return reconnect(p.Err)
	}
	if p.Err != nil {
		return nil
	}
	if p.RestoreSuspected && !s.store.HeldByOther() && time.Since(s.setBackAt) > setBackInterval {
		if back, err := inventory.SetBackSince(ctx, s.store, s.owned.inv); err == nil && back {
			// The versions of a restored cluster may have reached again what was known.
			s.setBackAt = time.Now()
			return reconnect(errors.New("inventories are earlier ones than were written, or missing"))
		}
	}
	if before.Err != nil || p.Returned || s.conn.CutOff() {
		s.conn.Restored()
		s.progress.retryAll()
		s.kinds.RetryLookups(nil)
		s.sync(ctx)
	}
	return nil
}

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
	if len(ids) == 0 || s.store.HeldByOther() {
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
	s.progress.postpone(ids)
	s.blocked = true
	s.schedule(inventoryRetry)
	return false
}

// largePass is the number of objects to be applied from which a pass counts for the common limit, and longPass is how long it does:
// a slow cluster must not delay all others.
const (
	largePass = 10
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
		ids[id] = s.progress.retryNow(id)
	}
	tasks, prune := s.applier.findTasks(ids, outdated)
	tasks, failed := s.inventories.announce(ctx, tasks, touched)
	if s.store.HeldByOther() {
		return // checkHolder follows
	}
	for _, o := range failed {
		s.record.failure(o)
	}
	s.applier.namespaces = s.health.Namespaces
	s.applier.apply(ctx, tasks, touched)
	s.applier.retryHooks(tasks)
	if s.applier.recreate(ctx, tasks, touched); s.store.HeldByOther() {
		return
	}
	if s.pruner.prune(ctx, prune, touched); s.store.HeldByOther() {
		return
	}
	s.saveInventories(ctx, touched)
	if len(s.record.fresh) > 0 {
		s.prober.NamespaceCreated()
	}
	s.reschedule()
}

// saveInventories writes the inventories that have changed. If their owners have changed, it
// reports them.
func (s *session) saveInventories(ctx context.Context, touched map[api.PlacementKey]bool) {
	s.inventories.save(ctx, touched)
	if s.store.UpdateOwners(s.owned.inv) {
		s.reportCluster()
	}
}

// resolve executes the decisions about held drifts.
func (s *session) resolve(ctx context.Context) {
	again, news := map[api.ID]bool{}, map[api.ID]bool{}
	for key := range s.drifts.decisions {
		r, known := s.drifts.decision(key)
		memory := s.drifts.memoryOf(key)
		d := memory[key.Placement][key.ID]
		switch {
		case !known:
		case r.PutBack, r.CompareAgain:
			s.record.settled(key.ID)
			again[key.ID], news[key.ID] = true, true
		case d.Message != r.Message:
			d.Message = connection.Cut(r.Message)
			memory.Put(key.Placement, d)
			news[key.ID] = true
		}
	}
	for w, due := range s.drifts.repeatedRemovals() {
		if due.After(time.Now()) && s.drifts.delayRemoval(w, due) {
			news[w.Manifest.ID] = true
		}
	}
	s.process(ctx, again)
	s.reschedule()
	if len(news) > 0 {
		s.reporter.touched(ctx, news)
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
		s.sweepNow(ctx)
	case len(tasks) > 0:
		s.handleValueResults(ctx, s.values.check(ctx, tasks))
	}
}

// handleValueResults applies objects again that have changed although their metadata does not show
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
	if len(s.progress.suspects) > 0 {
		s.reschedule()
	}
}

// sweepOn runs one step of a sweep: it checks what no watch has reported and lists one more kind.
func (s *session) sweepOn(ctx context.Context) {
	defer s.sweeper.schedule()
	if s.conn.CutOff() || s.leaving || s.blocked {
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

// sweepNow runs a whole sweep, because a user requested it or because very much was written.
// What no watch has reported is checked in the next step.
func (s *session) sweepNow(ctx context.Context) {
	s.sweeper.busy, s.sweeper.remaining = true, nil
	for _, gvk := range s.sweeper.watchedKinds() {
		if s.conn.CutOff() {
			break
		}
		s.handleValueResults(ctx, s.sweeper.checkKind(ctx, gvk))
	}
	s.sweeper.schedule()
}
