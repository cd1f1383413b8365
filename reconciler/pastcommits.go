package reconciler

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// The delays before another attempt to load a commit that clusters are assigned to.
const firstRetry, lastRetry = 30 * time.Second, 10 * time.Minute

// A retry is the time of the next attempt to load a commit, and the number of failures.
type retry struct {
	failures int
	at       time.Time
}

// pastLoaded adds a loaded commit that clusters are still assigned to.
func (r *Reconciler) pastLoaded(l loaded, now time.Time) {
	hash := l.commit.Hash
	delete(r.requested, hash)
	if l.err == nil {
		if r.lost[hash] != nil {
			r.cfg.Log.Info("commit of assigned content loaded after a failure", "commit", hash)
		}
		delete(r.lost, hash)
		delete(r.again, hash)
		r.past[hash] = l.snapshot
		return
	}
	failures := r.again[hash].failures
	if failures == 0 {
		r.cfg.Log.Warn("commit of assigned content could not be loaded; its clusters are left as they are until the rollout reaches them, and loading is retried",
			"commit", hash, "err", l.err)
		r.lost[hash] = l.err
	}
	wait := min(lastRetry, firstRetry<<min(failures, 10))
	r.again[hash] = retry{failures + 1, now.Add(wait)}
}

// requestCommits requests the commits that clusters are still assigned to, and drops those to
// which none is assigned.
func (r *Reconciler) requestCommits(p *plan.Plan, now time.Time) {
	for hash := range r.past {
		if !p.Commits[hash] && hash != r.head.Commit.Hash {
			delete(r.past, hash)
		}
	}
	for hash := range r.lost {
		if !p.Commits[hash] {
			delete(r.lost, hash)
			delete(r.again, hash)
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(p.Commits)) {
		r.want(hash, now)
	}
}

// want requests the load of a commit, unless it is loaded or its next retry is not due.
func (r *Reconciler) want(hash string, now time.Time) {
	if r.past[hash] != nil || r.requested[hash] || now.Before(r.again[hash].at) {
		return
	}
	select {
	case r.wanted <- hash:
		r.requested[hash] = true
	default: // another commit is being loaded, after which there is another turn
	}
}
