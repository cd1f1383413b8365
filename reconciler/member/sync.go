package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/unlisted"
)

// sync reconciles everything.
func (s *session) sync(ctx context.Context) {
	if s.reconcile(ctx, nil) {
		s.reporter.all(ctx)
	}
}

// syncWorks reconciles and reports only what differs between the new works and those before, so that a new work costs what it changes.
// It makes a full pass instead if the last pass was not complete, if something may have to be deleted, which is decided for all objects
// together, or if works were skipped. All other objects are as desired, or have a retry or a watch event pending.
func (s *session) syncWorks(ctx context.Context, before desired.Works) {
	changed := s.Works().ChangedSince(before)
	ids := s.owned.ObjectsOf(changed, before)
	for id := range s.progress.Failures() {
		ids[id] = true // a new work may have what it waits for
	}
	for _, d := range s.drift.Changes() {
		ids[d.ID] = true // held drift may have come to its end
	}
	skipped := s.skipped.Swap(false)
	if skipped || !s.reconciled || s.postponed || s.unlisted || s.leaving || len(s.blocker.blocked) > 0 || len(s.blocker.recreations()) > 0 || s.owned.AnyStale() {
		s.sync(ctx)
		return
	}
	if s.reconcile(ctx, ids) {
		s.reporter.some(ctx, changed, ids)
	}
}

// reconcile reconciles some objects, or everything if ids is nil: only then does the deletionBlocker decide which deletions are blocked. It reports
// whether the cluster is still ours.
func (s *session) reconcile(ctx context.Context, ids map[api.ID]bool) bool {
	if s.store.ClaimedByOther() {
		return false
	}
	s.inventories.adopt()
	if s.inventories.renameClaim(ctx) {
		s.reportCluster()
	}
	s.addUnlisted(ctx)
	everything := ids == nil
	if everything {
		ids = s.owned.Objects()
		for id := range s.Wanted().All() {
			ids[id] = true
		}
		s.record.progress.Compared(time.Now())
	}
	s.postponed, s.reconciled = false, false
	if len(ids) == 0 {
		s.saveInventories(ctx, map[api.PlacementKey]bool{}) // an empty inventory may have to be removed
		s.reschedule()
	} else if s.prepared(ctx, ids) {
		if everything { // the blocker needs the state from the watches
			s.blocker.decide(ids, s.blocker.deletes, s.blocker.recreations())
		}
		s.processPrepared(ctx, ids)
		if s.store.ClaimedByOther() {
			return false
		}
		s.checkSuspects(ctx)
	}
	s.observer.unwatch()
	if s.reconciled = ctx.Err() == nil && !s.conn.CutOff() && !s.postponed; s.reconciled {
		s.record.progress.AllTried()
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
		s.reportInventories()
	}
	if !again {
		for _, p := range s.store.SetBack() {
			if _, has := s.owned.Of(p); !has && len(s.Works().Of(p).Manifests) == 0 {
				inventory.Forget(s.store, p)
			}
		}
	}
}

// recheck checks everything again because a user requested it.
func (s *session) recheck(ctx context.Context) {
	s.searched = time.Time{}
	s.record.progress.RetryAll()
	s.kinds.RetryLookups(nil)
	s.record.progress.VerifyAgain()
	if s.lastWorks != nil && !s.leaving {
		s.sync(ctx)
		s.sweepAll(ctx)
	}
}

// processChanges processes the changes that the watches reported. lost says that another fleet has written inventories, so that nothing
// was done.
func (s *session) processChanges(ctx context.Context) (lost bool, err error) {
	if why := s.watch.Changes.Restored(); why != "" {
		s.restored = cmp.Or(s.restored, why)
		return false, reconnect(errors.New(why))
	}
	touched := s.observer.recordChanges()
	if s.store.LostToOther(ctx, touched) {
		return true, nil
	}
	s.record.progress.Trust(s.inventories.restore(ctx, touched)...)
	s.observer.retryWaiting(touched)
	s.blocker.recheckBlocked(touched, s.record.progress.RetryNow)
	s.process(ctx, touched)
	s.checkSuspects(ctx)
	s.reporter.touched(ctx, touched)
	s.reporter.askWhy(ctx)
	return false, nil
}

// retryDue retries the failures that are due.
func (s *session) retryDue(ctx context.Context) {
	s.reviewMissing(ctx)
	if s.postponed {
		s.sync(ctx)
		return
	}
	replaceFilled(s)
	due := map[api.ID]bool{}
	now := time.Now()
	for id, f := range s.progress.Failures() {
		if !f.Next.After(now) {
			due[id] = true
		}
	}
	for id, b := range s.blocker.blocked {
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
	for inv := range s.owned.All() {
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
			s.record.setLive(id, nil) // what is not known is read by the pass
			due[id] = true
		}
	}
	if !now.Before(s.progress.NextComparison()) {
		s.record.progress.Compared(now)
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
	if p.RestoreSuspected && !s.store.ClaimedByOther() && time.Since(s.setBackAt) > setBackInterval {
		if back, err := s.inventories.setBack(ctx); err == nil && back {
			// The versions of a restored cluster may have reached again what was known.
			s.setBackAt = time.Now()
			return reconnect(errors.New("inventories are earlier ones than were written, or missing"))
		}
	}
	if before.Err != nil || p.Returned || s.conn.CutOff() {
		s.conn.Restored()
		s.record.progress.RetryAll()
		s.kinds.RetryLookups(nil)
		s.sync(ctx)
	}
	return nil
}

// followDecisions does what was decided about held drift, and about additions that were offered.
func (s *session) followDecisions(ctx context.Context) {
	again, news := map[api.ID]bool{}, map[api.ID]bool{}
	for key, r := range s.drift.Decisions() {
		switch {
		case r.PutBack, r.CompareAgain:
			s.record.progress.Settled(key.ID)
			again[key.ID], news[key.ID] = true, true
		case s.drifts.state.Explained(key, connection.Cut(r.Message)):
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

// leaveCluster releases everything that we have on the cluster. What fails is retried later.
func (s *session) leaveCluster(ctx context.Context) {
	s.inventories.owned.ReplaceWorks(s.desired, s.inventories.owned.Release())
	s.sync(ctx)
	if s.owned.Count() > 0 || s.store.DeleteClaim(ctx) != nil {
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
