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
	return r.run(ctx, "", (&follower{Reconciler: r, leader: of}).loop)
}

// A follower plans and reports from the ledger of the leader.
type follower struct {
	*Reconciler
	leader  Leadership
	version string // of the ledger
	// confirmed is when the ledger was last known to be the newest. wait is the time until it is read again.
	confirmed time.Time
	wait      time.Duration
	failing   bool
}

func (f *follower) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var published time.Time
	for {
		news := false
		select {
		case <-ctx.Done():
			return
		case <-f.events.wake:
		case <-f.events.observed:
		case <-timer.C:
			news = f.readLedger()
			timer.Reset(f.wait)
		}
		now := f.cfg.Now()
		if f.drainCommits(now) || news {
			published = time.Time{}
		}
		if f.ledger != nil && !f.failing && now.Sub(published) >= refreshAfter && f.publish(ctx, now) {
			published = now
		}
	}
}

func (f *follower) readLedger() (news bool) {
	start := time.Now()
	l, version, err := f.leader.Newer(f.version)
	f.wait = max(ledgerInterval, 4*time.Since(start)) // reading a large ledger takes long
	if err != nil {
		if !f.failing {
			f.cfg.Log.Warn("ledger of the leader not read; the report of this replica becomes outdated", "err", err)
		}
		f.failing = true
		return false
	}
	f.failing, f.confirmed = false, f.cfg.Now()
	if l == nil {
		return false
	}
	f.version, f.ledger = version, l
	f.memo, f.statusMemo = plan.NewMemo(), status.NewMemo() // the caches refer to versions of the old ledger
	return true
}

// drainCommits processes new commits, and reports whether there were any.
func (f *follower) drainCommits(now time.Time) (news bool) {
	happened := f.events.drain()
	for _, l := range happened.pastCommits {
		f.past.add(l, now, f.cfg.Log)
	}
	for _, l := range happened.commits {
		f.newestLoaded(l)
	}
	f.source.Git = status.Git(f.cfg.Source.Status())
	return len(happened.pastCommits)+len(happened.commits) > 0
}

// newestLoaded processes a new commit, which the leader puts in force or refuses.
func (f *follower) newestLoaded(l loaded) {
	former := f.source.Newest.Hash
	inForce := f.ledger != nil && f.ledger.InForce() == former
	reported := f.inForce != nil && f.inForce.Commit.Hash == former
	if former != l.commit.Hash && !inForce && !reported { // without a report nothing else drops it
		delete(f.past.snapshots, former)
	}
	f.setNewest(l)
	if l.err == nil {
		f.past.snapshots[l.commit.Hash] = l.snapshot
	}
}

// publish publishes a report, unless there is no commit in force or it was not loaded yet.
func (f *follower) publish(ctx context.Context, now time.Time) bool {
	hash := f.ledger.InForce()
	if hash == "" {
		return false
	}
	snapshot := f.past.snapshots[hash]
	if snapshot == nil {
		if _, err := f.cfg.Source.Commit(ctx, hash); err == nil { // otherwise a poll will fetch it
			f.requestPast(ctx, hash, now)
		}
		return false
	}
	if f.inForce != snapshot {
		f.inForce, f.inForceSeenAt = snapshot, now
		f.source.InForce, f.source.Since = snapshot.Commit, now
	}
	p := f.makePlan(now)
	p.UpdateLedger(f.ledger) // only in memory, since the leader makes the same decision
	f.updatePast(ctx, p, now)
	report := f.report(p, now)
	report.Standby = &status.Standby{Leader: f.leader.Leader(), AsOf: f.confirmed}
	f.cfg.Publish(report)
	return true
}
