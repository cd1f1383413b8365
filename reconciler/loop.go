package reconciler

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// resyncPeriod is the maximum time between two turns. It limits the delay of everything that depends on the clock, such
// as how long a cluster has been unreachable.
const resyncPeriod = 30 * time.Second

// saveDelay is how long observations may wait to be saved: members report their progress in quick succession, and each
// save waits for the disk.
const saveDelay = time.Second

// partDelay is the time between two parts of a plan that is saved and sent in parts.
const partDelay = time.Millisecond

func (r *Reconciler) loop(ctx context.Context) {
	timer, rested := time.NewTimer(0), time.NewTimer(0)
	defer timer.Stop()
	defer rested.Stop()
	var p pace
	var observed <-chan struct{} // nil while the loop rests
	for {
		woken := false
		select {
		case <-ctx.Done():
			if !r.rebuilding {
				r.saveAll()
			}
			return
		case <-rested.C:
			observed = r.inbox.observed
			timer.Reset(r.untilNext(r.cfg.Now()))
			continue
		case <-observed:
		case <-r.inbox.wake:
			woken = true
		case <-timer.C:
			if observed == nil { // the next turn is when the loop has rested
				now := r.now()
				r.saveObservations(now)
				r.sendUnsent(ctx, now)
				switch {
				case r.unsent != nil:
					timer.Reset(partDelay)
				case !r.saveBy.IsZero():
					timer.Reset(r.saveBy.Sub(now))
				}
				continue
			}
		}
		start, saving := time.Now(), r.saving
		timer.Reset(r.turn(ctx))
		end, charged := time.Now(), time.Duration(0)
		if !woken { // somebody waits for what woke the loop, and it is rare
			charged = end.Sub(start) - (r.saving - saving) // a slow disk leaves the processor to the members
		}
		p.worked(start, end, charged)
		if rest := p.rest(); rest > 0 {
			observed = nil
			rested.Reset(rest)
		}
	}
}

// turn drains all events, so that a burst is planned once, and returns the time until the next turn.
func (r *Reconciler) turn(ctx context.Context) time.Duration {
	now := r.now()
	if r.drainEvents(ctx, now) || !now.Before(r.due) {
		r.due = now.Add(r.reconcile(ctx, now))
		r.sendAnswers()
		r.verify()
		if r.ledger.Unsaved() && !r.rebuilding && r.saveBy.IsZero() {
			r.saveBy = now.Add(saveDelay)
		}
	} else {
		r.sendUnsent(ctx, now)
	}
	r.saveObservations(now)
	return r.untilNext(now)
}

// saveObservations saves observations that have waited for saveDelay.
func (r *Reconciler) saveObservations(now time.Time) {
	if !r.saveBy.IsZero() && !now.Before(r.saveBy) && (!r.save() || r.ledger.Unsaved()) {
		r.saveBy = now.Add(saveDelay)
	}
}

// sendUnsent saves and sends more of the last plan, if a part of it is not saved yet.
func (r *Reconciler) sendUnsent(ctx context.Context, now time.Time) {
	if r.unsent == nil {
		return
	}
	saved := r.ledger.UnsavedBesides() || r.save() // dispatch saves a part of what else there is
	if saved {
		r.cfg.Metrics.timed(phaseDispatch, func() { saved = r.dispatch(ctx, r.unsent) })
	}
	if !saved {
		r.unsent, r.due = nil, now.Add(time.Second)
	}
}

// untilNext returns the time until the next turn or the next save.
func (r *Reconciler) untilNext(now time.Time) time.Duration {
	if r.unsent != nil {
		return partDelay
	}
	if !r.saveBy.IsZero() && r.saveBy.Before(r.due) {
		return r.saveBy.Sub(now)
	}
	return r.due.Sub(now)
}

// A verifier is a store whose data others may delete.
type verifier interface {
	// Verify returns what is missing of the saved ledger. l is then saved completely.
	Verify(l *ledger.Ledger) (missing []string)
}

// verify saves the ledger again if some of its data was deleted.
func (r *Reconciler) verify() {
	store, ok := r.cfg.Store.(verifier)
	if !ok {
		return
	}
	if missing := store.Verify(r.ledger); len(missing) > 0 {
		r.cfg.Log.Warn("parts of the saved ledger were deleted; saving it again", "missing", missing)
	}
}

// now reads the clock. If it was set back, recorded times in the future are moved to the new time.
func (r *Reconciler) now() time.Time {
	now := r.cfg.Now()
	if back := r.last.Round(0).Sub(now.Round(0)); back > 0 {
		r.cfg.Log.Warn("the clock was set back", "by", back)
		r.ledger.Rebase(now)
	}
	r.last = now
	return now
}

// drainEvents applies all events, and reports whether the fleet must be planned again.
func (r *Reconciler) drainEvents(ctx context.Context, now time.Time) (changed bool) {
	happened := r.inbox.drain()
	r.cfg.Metrics.timed(phaseFold, func() { changed = r.fold(happened.seen, now) })
	if foldGateAnswers(r.ledger, happened.gateAnswers) {
		changed = true
	}
	for _, l := range happened.pastCommits {
		r.past.add(l, now, r.cfg.Log)
	}
	for _, l := range happened.commits {
		r.commitLoaded(l, now)
	}
	if happened.driftDecisions != nil {
		r.driftDecisions = happened.driftDecisions
	}
	r.runOrders(ctx, happened.orders, now)
	before, git := r.source.Git, status.Git(r.cfg.Source.Status())
	r.source.Git = git
	return changed || happened.triggered || happened.driftDecisions != nil || len(happened.pastCommits)+len(happened.commits)+len(happened.orders) > 0 ||
		git.Head != before.Head || git.Failures != before.Failures || git.Error != before.Error
}

// reconcile plans the fleet, records the plan in the ledger, sends works to members, publishes a report, and returns
// the time until the next turn.
func (r *Reconciler) reconcile(ctx context.Context, now time.Time) time.Duration {
	if r.inForce == nil {
		r.cfg.Publish(r.report(&plan.Plan{}, now))
		return resyncPeriod
	}
	if r.waitingForInventories(now) {
		p := plan.Pending(r.inForce)
		r.dispatch(ctx, p)
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	if !r.resolveRenames(ctx, now) {
		return time.Second
	}
	for _, s := range r.ledger.ExpiredSuspensions(now) {
		r.ledger.Resume(s.Subject, now)
		r.planned = append(r.planned, []occurrence{userAction(history.Ended, s.Subject, s.By, "it was "+s.String())})
	}
	start := r.cfg.Now()
	p := r.makePlan(now)
	r.traceCommit(start)
	r.logPanics(p)
	r.planned = append(r.planned, planOccurrences(p, r.ledger, r.inForce.Commit)...)
	p.UpdateLedger(r.ledger)
	r.rebuilt, r.firstPlan = false, false
	r.loader.runsRecorded(r.ledger)
	saved := !r.ledger.Urgent() || r.save()
	if saved {
		for _, of := range r.planned {
			publish(r.cfg, of...)
		}
		r.planned = nil
		r.cfg.Metrics.timed(phaseDispatch, func() { saved = r.dispatch(ctx, p) })
	}
	if !saved { // no works are sent until the ledger is saved
		r.agents.withhold(p)
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	r.recordWorks(p)
	r.cfg.AskGates(gateQuestions(r.ledger, p), r.inbox.addGateAnswer)
	r.updatePast(ctx, p, now)
	r.history.read(ctx, r, now)
	r.cfg.Publish(r.report(p, now))
	if p.Wake.IsZero() {
		return resyncPeriod
	}
	return min(resyncPeriod, max(p.Wake.Sub(now), time.Millisecond))
}

func (r *Reconciler) makePlan(now time.Time) (p *plan.Plan) {
	r.cfg.Metrics.timed(phasePlan, func() {
		p = plan.Resolve(plan.Input{
			InForce: r.inForce, InForceSeenAt: r.inForceSeenAt, Past: r.past.snapshots, Lost: r.past.lost, Ledger: r.ledger, Now: now,
			Memo: r.cfg.Memo, ShortDecisions: true, MaxUnreachable: r.cfg.MaxUnreachable, AvailableTimeout: r.cfg.AvailableTimeout, RepairAfter: r.cfg.RepairAfter, Rebuilt: r.rebuilt, FirstPlan: r.firstPlan,
		})
	})
	return p
}

// recordWorks keeps the parts of a plan that orders need.
func (r *Reconciler) recordWorks(p *plan.Plan) {
	r.works, r.unanswered = p.Works, map[api.PlacementKey]int{}
	for pl := range p.Placements.Values() {
		if pl.Unanswered > 0 {
			r.unanswered[pl.Key] = pl.Unanswered
		}
	}
}

// report builds the report, and records its events and transitions in the ledger.
func (r *Reconciler) report(p *plan.Plan, now time.Time) (report *status.Report) {
	r.cfg.Metrics.timed(phaseReport, func() {
		report = status.Build(status.Input{Plan: p, InForce: r.inForce, Ledger: r.ledger, Source: r.source, Now: now, Conditions: r.cfg.Conditions, ApprovalsInGit: r.cfg.ApprovalsInGit, Memo: r.statusMemo})
		report.UpdateLedger(r.ledger)
	})
	return report
}

// logPanics logs placements whose planning panicked, once for each message.
func (r *Reconciler) logPanics(p *plan.Plan) {
	faults := map[api.PlacementKey]string{}
	for pl := range p.Placements.Values() {
		if pl.InternalError == "" {
			continue
		}
		faults[pl.Key] = pl.InternalError
		if r.faults[pl.Key] != pl.InternalError {
			r.cfg.Log.Error("planning the placement panicked; keeping its last state", "placement", pl.Key.String(), "err", pl.InternalError, "stack", pl.Stack)
		}
	}
	r.faults = faults
}

// rebuildTimeout is how long an empty ledger waits for members to report their inventories.
const rebuildTimeout = 30 * time.Second

// waitingForInventories reports whether it is too early to plan: the ledger was empty at the start, and not every
// member has reported either its inventories or that it is unreachable. Planning earlier would schedule placements
// again after the ledger was lost.
func (r *Reconciler) waitingForInventories(now time.Time) bool {
	if !r.rebuilding {
		return false
	}
	for _, c := range r.inForce.Clusters {
		if r.ledger.Cluster(c.Name) == nil && now.Sub(r.started) < rebuildTimeout {
			return true
		}
	}
	r.ledger.ResolveID(r.cfg.Fleet.ID)
	// Without inventories this is most likely the first start.
	r.rebuilding, r.firstPlan, r.rebuilt = false, true, len(r.ledger.Placements()) > 0
	return false
}

// commitLoaded puts a new commit in force. A commit that could not be loaded is only reported.
func (r *Reconciler) commitLoaded(l loaded, now time.Time) {
	if l.history {
		r.history.add(r, l, now)
		return
	}
	if l.reloaded && r.source.Newest.Hash != l.commit.Hash {
		return
	}
	r.newestFatal = errors.Is(l.err, errFatalCommit)
	r.setNewest(l)
	if l.waiting {
		r.cfg.Log.Info("commit waits for its remote bases and charts", "commit", l.commit.Hash, "fetches", r.source.Fetches)
		return
	}
	err := l.err
	if err == nil {
		if r.inForce != nil && r.inForce.Commit.Hash == l.commit.Hash {
			if l.refetched { // overlays can be built now that could not be before
				r.inForce, r.past.snapshots[l.commit.Hash] = l.snapshot, l.snapshot
			}
			return
		}
		if why := cmp.Or(plan.RemovesEverything(l.snapshot, r.ledger), plan.StopsBuilding(l.snapshot, r.inForce), plan.Drops(l.snapshot, r.inForce)); why != "" && !l.resumed {
			r.source.LoadError, err = why, errors.New(why)
		}
	}
	if err != nil {
		refused := occurrence{Entry: commitEntry(history.Refused, l.commit, cmp.Or(r.source.LoadError, r.source.Problems.Summary())), loadTook: l.took, refused: err}
		refused.Time = now
		if r.inForce != nil {
			refused.staysInForce = r.inForce.Commit.Hash
		}
		publish(r.cfg, refused)
		return
	}
	r.inForce, r.inForceSeenAt = l.snapshot, l.seen
	if l.seen.After(now) { // the clock was set back
		r.inForceSeenAt = now
	}
	accepted := occurrence{loadTook: l.took, inForce: l.snapshot}
	if r.ledger.InForce() != l.commit.Hash { // it was not merely loaded again after a restart
		accepted.Entry = commitEntry(history.InForce, l.commit, "")
		r.untraced = now
	}
	publish(r.cfg, accepted)
	r.ledger.SetInForce(l.commit.Hash)
	r.ledger.Declare(l.commit.Hash, l.commit.Time, declared(l.snapshot))
	r.source.InForce, r.source.Since = l.commit, now
	r.past.snapshots[l.commit.Hash] = l.snapshot
}

// saveAll saves everything, with several saves if it is very much.
func (r *Reconciler) saveAll() {
	for r.save() && r.ledger.Unsaved() {
	}
}

// save saves the ledger, and reports whether it is saved. If there is very much to save, entries that were added are left to the
// next saves.
func (r *Reconciler) save() bool {
	faults.At("before save")
	defer faults.At("after save")
	var err error
	start := time.Now()
	r.cfg.Metrics.timed(phaseSave, func() { err = r.cfg.Store.Save(r.ledger) })
	r.saving += time.Since(start)
	if err != nil {
		r.cfg.Log.Error("ledger not saved; works are sent to members only after it is", "err", err)
		return false
	}
	r.saveBy = time.Time{}
	return true
}
