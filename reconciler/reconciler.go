// Package reconciler runs the reconcile loop: it receives commits and observations, plans the fleet, records the plan
// in the ledger, sends works to the members, and publishes a report.
//
// What arrives between two turns waits in the inbox, which keeps only the newest observation about each subject. A turn drains it:
//   - Each observation is folded into the ledger (fold.go). The entries before and after show what has happened (package
//     occurrence), for the history, metrics and traces.
//   - Commits come into force or are refused (commits.go), and orders of users are carried out (orders.go).
//   - If anything has changed, plan.Resolve makes a new plan from the commit in force and the ledger. The plan is recorded in
//     the ledger, which is saved (save.go) before the agents of the members get their works (dispatch.go).
//   - status.Build makes a report of plan and ledger, and Config.Publish passes it on, for example to the server.
//
// One goroutine owns the ledger and the current snapshot, and others send values to it. It never waits for Git or a
// cluster.
package reconciler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Reconciler runs the loop. Run may be called once.
type Reconciler struct {
	cfg     *Config
	inbox   *inbox
	running sync.WaitGroup
	ledger  *ledger.Ledger

	observations observations
	commits      commits
	agents       agents
	saver        saver
	statusMemo   *status.Memo

	// last is the time of the last turn, and due the latest time of the next one.
	last, due time.Time
	// answered are the orders whose answers wait for the end of the turn.
	answered []queuedOrder
	// planned are the occurrences of plans, until the ledger is saved.
	planned [][]occurrence.Occurrence
	// faults are the placements whose planning panicked, with the messages that were logged.
	faults map[api.PlacementKey]string

	// works are the works that were last sent to clusters. unanswered is the number of clusters for which a placement
	// leaves room, because they have not answered since the ledger was lost.
	works      map[string][]*work.Work
	unanswered map[api.PlacementKey]int

	// rebuilding says that the ledger was empty at the start, and that members may still report their inventories.
	// Nothing is saved meanwhile, since after a crash it would not be known that the ledger was lost. firstPlan says that this has ended
	// and that nothing was planned since, and rebuilt that there were inventories, too.
	rebuilding, firstPlan, rebuilt bool
	started                        time.Time
}

// New returns a Reconciler. Run starts it.
func New(cfg Config) *Reconciler {
	cfg = cfg.withDefaults()
	r := &Reconciler{cfg: &cfg, inbox: newInbox(&cfg.Metrics.waiting), observations: observations{cfg: &cfg}, saver: saver{cfg: &cfg}, statusMemo: status.NewMemo()}
	r.commits = newCommits(r.cfg, &r.running, newLoader(r.cfg, r.inbox.addLoaded))
	r.agents = newAgents(r.cfg, &r.running, r.inbox.observe, r.inbox.trigger)
	return r
}

// Run runs the loop until ctx is done. When it returns, everything it started has ended and the ledger is saved. An
// error means that the loop cannot continue.
func (r *Reconciler) Run(ctx context.Context) error {
	var err error
	if r.ledger, err = r.cfg.Store.Load(); err != nil {
		return err
	}
	r.rebuilding = r.ledger.Empty()
	r.commits.loader.lostRuns.Store(r.rebuilding || hasLostRuns(r.ledger))
	r.setFleet()
	r.ledger.Rebase(r.cfg.Now())
	lastInForce := r.ledger.InForce()
	r.commits.loader.guard, r.started = crashguard.New(r.cfg.LoadingFile, r.cfg.Log), r.cfg.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer r.running.Wait()
	defer cancel(nil)
	r.running.Go(func() {
		r.commits.loader.loadLastInForce(ctx, lastInForce)
		cancel(r.commits.loader.followSource(ctx))
	})
	r.loop(ctx)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// setFleet records the fleet's identity. If the ledger is empty, the ID may still be determined from the reports of
// members.
func (r *Reconciler) setFleet() {
	f := r.cfg.Fleet
	if id := r.ledger.Fleet().ID; id != "" || r.rebuilding {
		f.ID = id
	}
	r.ledger.SetFleet(f)
}

// resyncPeriod is the maximum time between two turns. It limits the delay of everything that depends on the clock, such
// as how long a cluster has been unreachable.
const resyncPeriod = 30 * time.Second

// partDelay is the time between two parts of a plan that is saved and sent in parts.
const partDelay = time.Millisecond

// loop runs turns until ctx is done. Between turns, it saves and sends what they have left for later.
func (r *Reconciler) loop(ctx context.Context) {
	timer, rested := time.NewTimer(0), time.NewTimer(0)
	defer timer.Stop()
	defer rested.Stop()
	var p pace
	var observed <-chan struct{} // nil while the loop rests; see pace
	for {
		woken := false
		select {
		case <-ctx.Done():
			if !r.rebuilding {
				r.saver.saveAll(r.ledger)
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
				r.saver.saveObservations(r.ledger, now)
				r.sendUnsent(ctx, now)
				switch {
				case r.agents.unsent != nil:
					timer.Reset(partDelay)
				case !r.saver.due.IsZero():
					timer.Reset(r.saver.due.Sub(now))
				}
				continue
			}
		}
		start, saving := time.Now(), r.saver.took
		timer.Reset(r.turn(ctx))
		end, charged := time.Now(), time.Duration(0)
		if !woken { // somebody waits for what woke the loop, and it is rare
			charged = end.Sub(start) - (r.saver.took - saving) // a slow disk leaves the processor to the members
		}
		p.worked(start, end, charged)
		if rest := p.rest(); rest > 0 {
			observed = nil
			rested.Reset(rest)
		}
	}
}

// turn drains all events, so that a burst is planned once, reconciles the fleet if they have changed anything or it is time, and
// returns the time until the next turn.
func (r *Reconciler) turn(ctx context.Context) time.Duration {
	now := r.now()
	if r.drainEvents(ctx, now) || !now.Before(r.due) {
		r.due = now.Add(r.reconcile(ctx, now))
		r.sendAnswers()
		r.saver.verify(r.ledger)
		if !r.rebuilding {
			r.saver.delay(r.ledger, now)
		}
	} else {
		r.sendUnsent(ctx, now)
	}
	r.saver.saveObservations(r.ledger, now)
	return r.untilNext(now)
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
	r.cfg.Metrics.timed(phaseFold, func() { changed = r.observations.fold(r.ledger, &r.agents, happened.seen, now) })
	if foldGateAnswers(r.ledger, happened.gateAnswers) {
		changed = true
	}
	for _, l := range happened.pastCommits {
		r.commits.past.add(l, now, r.cfg.Log)
	}
	for _, l := range happened.commits {
		r.commits.putInForce(l, r.ledger, now)
	}
	if happened.driftDecisions != nil {
		r.agents.driftDecisions = happened.driftDecisions
	}
	r.runOrders(ctx, happened.orders, now)
	before, git := r.commits.source.Git, status.Git(r.cfg.Source.Status())
	r.commits.source.Git = git
	if !git.LastPoll.IsZero() {
		was := ledger.RepositoryOf(r.ledger)
		is := was.Polled(git.Error, git.Refused)
		ledger.SetRepository(r.ledger, is)
		addEvents(r.ledger, now, occurrence.OfPolls(was, is)...)
	}
	return changed || happened.triggered || happened.driftDecisions != nil || len(happened.pastCommits)+len(happened.commits)+len(happened.orders) > 0 ||
		git.Head != before.Head || git.Failures != before.Failures || git.Error != before.Error
}

// reconcile plans the fleet, records the plan in the ledger, sends works to members, publishes a report, and returns
// the time until the next turn.
func (r *Reconciler) reconcile(ctx context.Context, now time.Time) time.Duration {
	if r.commits.inForce == nil {
		r.cfg.Publish(r.report(&plan.Plan{}, now))
		return resyncPeriod
	}
	if r.waitingForInventories(now) {
		p := plan.Pending(r.commits.inForce)
		r.dispatch(ctx, p)
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	if waiting := r.agents.resolveRenames(r.commits.inForce, now.Sub(r.commits.source.Since), r.ledger); waiting != nil {
		r.dispatch(ctx, waiting)
		return time.Second
	}
	r.endSuspensions(now)
	start := r.cfg.Now()
	p := r.makePlan(now)
	r.commits.trace(start)
	r.recordPlan(p)
	if !r.carryOut(ctx, p) {
		r.agents.withhold(p)
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	r.recordWorks(p)
	r.cfg.AskGates(gateQuestions(r.ledger, p), r.inbox.addGateAnswer)
	r.commits.updatePast(ctx, p, now)
	r.commits.readHistory(ctx, now)
	r.cfg.Publish(r.report(p, now))
	if p.Wake.IsZero() {
		return resyncPeriod
	}
	return min(resyncPeriod, max(p.Wake.Sub(now), time.Millisecond))
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
	for _, c := range r.commits.inForce.Clusters {
		if r.ledger.Cluster(c.Name) == nil && now.Sub(r.started) < rebuildTimeout {
			return true
		}
	}
	r.ledger.ResolveID(r.cfg.Fleet.ID)
	// Without inventories this is most likely the first start.
	r.rebuilding, r.firstPlan, r.rebuilt = false, true, len(r.ledger.Placements()) > 0
	return false
}

// endSuspensions ends the suspensions whose time is over.
func (r *Reconciler) endSuspensions(now time.Time) {
	expired := r.ledger.ExpiredSuspensions(now)
	for _, s := range expired {
		r.ledger.Resume(s.Subject, now)
	}
	if ended := occurrence.OfSuspensions(expired, nil, "", now); len(ended) > 0 {
		addEvents(r.ledger, now, ended...)
		r.planned = append(r.planned, ended)
	}
}

// makePlan plans the fleet by the commit in force and what the ledger has now.
func (r *Reconciler) makePlan(now time.Time) (p *plan.Plan) {
	r.cfg.Metrics.timed(phasePlan, func() {
		p = plan.Resolve(plan.Input{
			InForce: r.commits.inForce, InForceSeenAt: r.commits.inForceSeenAt, Past: r.commits.past.snapshots, Lost: r.commits.past.lost, Ledger: r.ledger, Now: now,
			Memo: r.cfg.Memo, ShortDecisions: true, MaxUnreachable: r.cfg.MaxUnreachable, AvailableTimeout: r.cfg.AvailableTimeout, RepairAfter: r.cfg.RepairAfter, Rebuilt: r.rebuilt, FirstPlan: r.firstPlan,
		})
	})
	return p
}

// recordPlan records a plan in the ledger, and keeps its occurrences until the ledger is saved.
func (r *Reconciler) recordPlan(p *plan.Plan) {
	r.logPanics(p)
	r.planned = append(r.planned, occurrence.OfPlan(p, r.ledger, r.commits.inForce.Commit)...)
	p.UpdateLedger(r.ledger)
	r.rebuilt, r.firstPlan = false, false
	r.commits.loader.runsRecorded(r.ledger)
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

// carryOut saves a recorded plan, publishes its occurrences, and sends its works. If the ledger cannot be saved, it sends no works
// that are not saved, and returns false.
func (r *Reconciler) carryOut(ctx context.Context, p *plan.Plan) (saved bool) {
	if r.ledger.Urgent() && !r.saver.save(r.ledger) {
		return false
	}
	for _, of := range r.planned {
		publish(r.cfg, of...)
	}
	r.planned = nil
	r.cfg.Metrics.timed(phaseDispatch, func() { saved = r.dispatch(ctx, p) })
	return saved
}

// dispatch sends the works of a plan, and reports whether they were saved before.
func (r *Reconciler) dispatch(ctx context.Context, p *plan.Plan) (saved bool) {
	return r.agents.dispatch(ctx, p, r.commits.inForce, r.ledger, &r.saver)
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
		report = r.statusMemo.Build(status.Input{Plan: p, InForce: r.commits.inForce, Ledger: r.ledger, Source: r.commits.source, Now: now, Conditions: r.cfg.Conditions, ApprovalsInGit: r.cfg.ApprovalsInGit})
		report.UpdateLedger(r.ledger)
	})
	return report
}

// untilNext returns the time until the next turn or the next save.
func (r *Reconciler) untilNext(now time.Time) time.Duration {
	if r.agents.unsent != nil {
		return partDelay
	}
	if !r.saver.due.IsZero() && r.saver.due.Before(r.due) {
		return r.saver.due.Sub(now)
	}
	return r.due.Sub(now)
}

// sendUnsent saves and sends more of the last plan, if a part of it is not saved yet.
func (r *Reconciler) sendUnsent(ctx context.Context, now time.Time) {
	if r.agents.unsent == nil {
		return
	}
	saved := r.ledger.UnsavedBesides() || r.saver.save(r.ledger) // dispatch saves a part of what else there is
	if saved {
		r.cfg.Metrics.timed(phaseDispatch, func() { saved = r.dispatch(ctx, r.agents.unsent) })
	}
	if !saved {
		r.agents.unsent, r.due = nil, now.Add(time.Second)
	}
}

// SetDriftDecisions replaces the decisions about held drift, by cluster. They take effect with the next turn, like observations.
// It never blocks, and may be called concurrently.
func (r *Reconciler) SetDriftDecisions(all map[string]protocol.DriftDecisions) {
	r.inbox.putTo(r.inbox.observed, func() { r.inbox.driftDecisions = all })
}

// ReportSource causes a turn that reports the state of the source, for example after a poll has failed. It never blocks, and may be called concurrently.
func (r *Reconciler) ReportSource() { r.inbox.triggerSoon() }
