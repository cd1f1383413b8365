package reconciler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// beat is the longest time between two turns: what depends on the clock, such
// as how long a cluster has been out of reach, is thought through again.
const beat = 30 * time.Second

// loop turns until ctx is done.
func (r *Reconciler) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if !r.fresh {
				r.save()
			}
			return
		case <-r.events.wake:
		case <-timer.C:
		}
		timer.Reset(r.turn(ctx))
	}
}

// turn takes what has happened, all of it, so that a burst is thought through
// once, and returns how long it may take until the next.
func (r *Reconciler) turn(ctx context.Context) time.Duration {
	now := r.now()
	if r.take(now) || !now.Before(r.due) {
		r.due = now.Add(r.think(ctx, now))
		r.answer()
		if r.ledger.Unsaved() && !r.fresh && r.saveBy.IsZero() {
			r.saveBy = now.Add(lull)
		}
	}
	if !r.saveBy.IsZero() && !now.Before(r.saveBy) && !r.save() {
		r.saveBy = now.Add(lull)
	}
	if !r.saveBy.IsZero() && r.saveBy.Before(r.due) {
		return r.saveBy.Sub(now)
	}
	return r.due.Sub(now)
}

// lull is how long what was only seen may wait to be saved: members that say
// how far they got do so in one breath, and each save is a wait for the disk.
const lull = time.Second

// now reads the clock. Once that was set back, what is remembered lies in the
// future, and is told from the new time on.
func (r *Reconciler) now() time.Time {
	now := r.cfg.Now()
	if back := r.last.Round(0).Sub(now.Round(0)); back > 0 {
		r.cfg.Log.Warn("the clock was set back", "by", back)
		r.ledger.Rebase(now)
	}
	r.last = now
	return now
}

// take takes in what has happened, and reports whether any of it is news.
func (r *Reconciler) take(now time.Time) bool {
	happened := r.events.take()
	news := happened.nudged
	r.cfg.Metrics.timed(phaseFold, func() { news = r.fold(happened.seen, now) || news })
	for _, l := range happened.past {
		r.recalled(l, now)
	}
	for _, l := range happened.heads {
		r.arrived(l, now)
	}
	if happened.resolutions != nil {
		r.resolutions, news = happened.resolutions, true
	}
	r.obey(happened.commands, now)
	before, git := r.source.Git, status.Git(r.cfg.Source.Status())
	r.source.Git = git
	return news || len(happened.past)+len(happened.heads)+len(happened.commands) > 0 ||
		git.Head != before.Head || git.Failures != before.Failures || git.Error != before.Error
}

// think thinks everything through, writes down what was decided, tells members
// and everybody else, and returns how long that is good for.
func (r *Reconciler) think(ctx context.Context, now time.Time) time.Duration {
	if r.head == nil {
		r.cfg.Publish(r.report(&plan.Plan{}, now))
		return beat
	}
	if r.listening(now) {
		p := plan.Pending(r.head)
		r.dispatch(ctx, p)
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	for _, s := range r.ledger.Expire(now) {
		r.decided = append(r.decided, act(history.Ended, s.Subject, s.By, "it was "+s.String()))
		r.cfg.Log.Info("a suspension has come to its end", "subject", s.Subject.String(), "by", s.By, "reason", s.Reason)
	}
	start := r.cfg.Now()
	p := r.resolve(now)
	r.traceCommit(start)
	r.complain(p)
	r.cfg.Metrics.planned(p, r.ledger)
	r.decided = append(r.decided, decided(p, r.ledger, r.head.Commit)...)
	p.UpdateLedger(r.ledger)
	r.rebuilt = false
	if (r.ledger.Pressing() || r.tells(p)) && !r.save() {
		// Nobody is told what would be forgotten in a crash.
		r.cfg.Publish(r.report(p, now))
		return time.Second
	}
	r.cfg.Record(r.decided...)
	r.decided = nil
	r.cfg.Metrics.timed(phaseDispatch, func() { r.dispatch(ctx, p) })
	r.note(p)
	r.ask(p, now)
	r.cfg.Publish(r.report(p, now))
	if p.Wake.IsZero() {
		return beat
	}
	return min(beat, max(p.Wake.Sub(now), time.Millisecond))
}

// resolve makes the current plan.
func (r *Reconciler) resolve(now time.Time) (p *plan.Plan) {
	r.cfg.Metrics.timed(phasePlan, func() {
		p = plan.Resolve(plan.Input{
			Head: r.head, HeadSeen: r.seen, Past: r.past, Lost: r.lost, Ledger: r.ledger, Now: now, Memo: r.memo, ShortDecisions: true,
			MaxUnreachable: r.cfg.MaxUnreachable, AvailableTimeout: r.cfg.AvailableTimeout, Rebuilt: r.rebuilt,
		})
	})
	return p
}

// note keeps of a plan what a person may ask about.
func (r *Reconciler) note(p *plan.Plan) {
	r.works, r.unseen = p.Works, map[api.PlacementKey]int{}
	for _, pl := range p.Placements {
		if pl.Unseen > 0 {
			r.unseen[pl.Key] = pl.Unseen
		}
	}
}

// report says what became of everything. What is news is known to the ledger
// from then on.
func (r *Reconciler) report(p *plan.Plan, now time.Time) (report *status.Report) {
	r.cfg.Metrics.timed(phaseReport, func() {
		report = status.Build(status.Input{Plan: p, Head: r.head, Ledger: r.ledger, Source: r.source, Now: now, Conditions: r.cfg.Conditions, Memo: r.told})
		report.Remember(r.ledger)
	})
	return report
}

// complain logs faults of the program, each once.
func (r *Reconciler) complain(p *plan.Plan) {
	faults := map[api.PlacementKey]string{}
	for _, pl := range p.Placements {
		if pl.InternalError == "" {
			continue
		}
		faults[pl.Key] = pl.InternalError
		if r.faults[pl.Key] != pl.InternalError {
			r.cfg.Log.Error("a placement cannot be thought about; what it holds is left alone", "placement", pl.Key.String(), "err", pl.InternalError, "stack", pl.Stack)
		}
	}
	r.faults = faults
}

// fold takes in what members said: of clusters first, since what one holds has
// to be known before what is said of it. What an agent said that is running no
// more, of a cluster that has left say, is dropped. It reports whether anybody
// could tell.
func (r *Reconciler) fold(seen map[subject]ledger.Observation, now time.Time) (news bool) {
	subjects := slices.SortedFunc(maps.Keys(seen), func(a, b subject) int {
		return cmp.Or(
			strings.Compare(a.placement.Name, b.placement.Name),
			strings.Compare(a.placement.Namespace, b.placement.Namespace),
			strings.Compare(a.cluster, b.cluster),
		)
	})
	for _, s := range subjects {
		if r.members[s.cluster] != nil && r.foldOne(s, seen[s]) {
			news = true
		}
	}
	if len(r.deleted) > 0 {
		// Before anything is decided: a placement is forgotten once all of it is deleted.
		r.ledger.Tell(ledger.Record(r.ledger.Events(), status.DeletionEvents(r.ledger, r.deleted, now)))
		r.deleted = nil
	}
	return news
}

// hearing is how long a ledger that knows nothing waits for members to say what
// they hold.
const hearing = 30 * time.Second

// listening reports whether it is too early to decide: the ledger was empty at
// the start, and not every member has said yet what it holds, or that it cannot
// be reached. Otherwise a lost ledger would place everything anew.
func (r *Reconciler) listening(now time.Time) bool {
	if !r.fresh {
		return false
	}
	for _, c := range r.head.Clusters {
		if r.ledger.Cluster(c.Name) == nil && now.Sub(r.started) < hearing {
			return true
		}
	}
	r.ledger.Settle(r.cfg.Fleet.ID)
	// If members hold nothing, this is more likely the first start of all.
	r.fresh, r.rebuilt = false, len(r.ledger.Placements()) > 0
	return false
}

// arrived takes in a new commit. One that does not load changes nothing but
// what is told.
func (r *Reconciler) arrived(l loaded, now time.Time) {
	if l.again && r.source.Newest.Hash != l.commit.Hash {
		return
	}
	r.deadly = errors.Is(l.err, errDeadly)
	r.source.Newest, r.source.Problems, r.source.LoadError = l.commit, nil, ""
	if l.err != nil {
		var bad *hub.LoadError
		if errors.As(l.err, &bad) {
			r.source.Problems = bad.Problems.ErrorsFirst()
		} else {
			r.source.LoadError = l.err.Error()
		}
		r.refused(l, now, cmp.Or(r.source.LoadError, r.source.Problems.Summary()))
		r.cfg.Log.Error("commit refused", "commit", l.commit.Hash, "inForce", r.source.InForce.Hash, "err", l.err)
		return
	}
	if r.head != nil && r.head.Commit.Hash == l.commit.Hash {
		return
	}
	if why := plan.Empties(l.snapshot, r.ledger); why != "" && !l.resumed {
		r.source.LoadError = why
		r.refused(l, now, why)
		r.cfg.Log.Error("commit refused", "commit", l.commit.Hash, "inForce", r.source.InForce.Hash, "err", why)
		return
	}
	r.head, r.seen = l.snapshot, now.Add(-l.took)
	if r.ledger.Head() != l.commit.Hash { // not only anew since a restart
		r.cfg.Record(commitEntry(history.InForce, l.commit, ""))
		r.untraced = now
	}
	r.ledger.SetHead(l.commit.Hash)
	r.ledger.Declare(l.commit.Hash, l.commit.Time, declared(l.snapshot))
	r.source.InForce = l.commit
	r.source.Since = now
	r.past[l.commit.Hash] = l.snapshot
	r.cfg.Log.Info("commit in force", "commit", l.commit.Hash, "subject", l.commit.Subject,
		"objects", len(l.snapshot.Objects), "placements", len(l.snapshot.Placements), "clusters", len(l.snapshot.Clusters), "took", l.took)
}

func (r *Reconciler) save() bool {
	faults.At("before save")
	defer faults.At("after save")
	var err error
	r.cfg.Metrics.timed(phaseSave, func() { err = r.cfg.Store.Save(r.ledger) })
	if err != nil {
		r.cfg.Log.Error("ledger not saved; nothing new is told to any cluster until it is", "err", err)
		return false
	}
	r.saveBy = time.Time{}
	return true
}
