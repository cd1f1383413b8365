package reconciler

import (
	"context"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Leadership gives a standby access to the state of the leader.
type Leadership interface {
	// Newer returns the ledger of the leader, unless its version is known.
	Newer(known string) (l *ledger.Ledger, version string, err error)
	// Leader returns the identity of the leader; empty if it is not known.
	Leader() string
}

// The time between two reads of the ledger, and the maximum age of a report although nothing has changed.
const (
	ledgerInterval = 2 * time.Second
	refreshAfter   = 10 * time.Second
)

// Follow publishes reports about the decisions of another replica until ctx is done, from the ledger that the leader
// saves and the commits of the repository. It makes no decisions, saves nothing and starts no members. While the ledger
// cannot be read, no report is published, and the age of the last one grows.
func (r *Reconciler) Follow(ctx context.Context, of Leadership) error {
	return r.run(ctx, "", func(ctx context.Context) { r.standBy(ctx, of) })
}

// A reader reads the ledger of the leader.
type reader struct {
	of      Leadership
	version string
	// confirmed is when the ledger was last known to be the newest. wait is the time until it is read again.
	confirmed time.Time
	wait      time.Duration
	failing   bool
}

// standBy reads and reports until ctx is done.
func (r *Reconciler) standBy(ctx context.Context, of Leadership) {
	from := &reader{of: of}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var published time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.events.wake:
		case <-timer.C:
			if r.readLedger(from) {
				published = time.Time{}
			}
			timer.Reset(from.wait)
		}
		now := r.cfg.Now()
		if r.drainCommits(now) {
			published = time.Time{}
		}
		if r.ledger != nil && !from.failing && now.Sub(published) >= refreshAfter && r.publishCopy(ctx, now, from) {
			published = now
		}
	}
}

// readLedger replaces the ledger by a newer one.
func (r *Reconciler) readLedger(from *reader) (news bool) {
	start := time.Now()
	l, version, err := from.of.Newer(from.version)
	from.wait = max(ledgerInterval, 4*time.Since(start)) // reading a large ledger takes long
	if err != nil {
		if !from.failing {
			r.cfg.Log.Warn("ledger of the leader not read; the report of this replica becomes outdated", "err", err)
		}
		from.failing = true
		return false
	}
	from.failing, from.confirmed = false, r.cfg.Now()
	if l == nil {
		return false
	}
	from.version, r.ledger = version, l
	r.memo, r.statusMemo = plan.NewMemo(), status.NewMemo() // the caches refer to versions of the old ledger
	return true
}

// drainCommits processes new commits, and reports whether there were any.
func (r *Reconciler) drainCommits(now time.Time) (news bool) {
	happened := r.events.drain()
	for _, l := range happened.pastCommits {
		r.pastLoaded(l, now)
	}
	for _, l := range happened.commits {
		r.newestLoaded(l)
	}
	r.source.Git = status.Git(r.cfg.Source.Status())
	return len(happened.pastCommits)+len(happened.commits) > 0
}

// newestLoaded processes a new commit, which the leader puts in force or refuses.
func (r *Reconciler) newestLoaded(l loaded) {
	former := r.source.Newest.Hash
	inForce := r.ledger != nil && r.ledger.InForce() == former
	reported := r.inForce != nil && r.inForce.Commit.Hash == former
	if former != l.commit.Hash && !inForce && !reported { // without a report nothing else drops it
		delete(r.past.snapshots, former)
	}
	r.setNewest(l)
	if l.err == nil {
		r.past.snapshots[l.commit.Hash] = l.snapshot
	}
}

// publishCopy publishes a report, unless there is no commit in force or it was not loaded yet.
func (r *Reconciler) publishCopy(ctx context.Context, now time.Time, from *reader) bool {
	hash := r.ledger.InForce()
	if hash == "" {
		return false
	}
	snapshot := r.past.snapshots[hash]
	if snapshot == nil {
		if _, err := r.cfg.Source.Commit(ctx, hash); err == nil { // otherwise a poll will fetch it
			r.loadPast(ctx, hash, now)
		}
		return false
	}
	if r.inForce != snapshot {
		r.inForce, r.inForceSeenAt = snapshot, now
		r.source.InForce, r.source.Since = snapshot.Commit, now
	}
	p := r.makePlan(now)
	p.UpdateLedger(r.ledger) // only in memory, since the leader makes the same decision
	r.updatePast(ctx, p, now)
	report := r.report(p, now)
	report.Standby = &status.Standby{Leader: from.of.Leader(), AsOf: from.confirmed}
	r.cfg.Publish(report)
	return true
}
