package reconciler

import (
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// The delays before another attempt to load a commit that clusters are assigned to.
const firstPastRetry, lastPastRetry = 30 * time.Second, 10 * time.Minute

// A pastRetry is the time of the next attempt to load a past commit, and the number of failures.
type pastRetry struct {
	failures int
	at       time.Time
}

// pastLoaded adds a loaded commit that clusters are still assigned to.
func (r *Reconciler) pastLoaded(l loaded, now time.Time) {
	hash := l.commit.Hash
	delete(r.pastRequested, hash)
	if l.err == nil {
		if r.lostCommits[hash] != nil {
			r.cfg.Log.Info("commit of assigned content loaded after a failure", "commit", hash)
		}
		delete(r.lostCommits, hash)
		delete(r.pastRetries, hash)
		r.pastSnapshots[hash] = l.snapshot
		return
	}
	failures := r.pastRetries[hash].failures
	if failures == 0 {
		r.cfg.Log.Warn("commit of assigned content could not be loaded; its clusters are left as they are until the rollout reaches them, and loading is retried",
			"commit", hash, "err", l.err)
		r.lostCommits[hash] = l.err
	}
	wait := min(lastPastRetry, firstPastRetry<<min(failures, 10))
	r.pastRetries[hash] = pastRetry{failures + 1, now.Add(wait)}
}

// requestPastCommits requests the commits that clusters are still assigned to, and drops those to
// which none is assigned.
func (r *Reconciler) requestPastCommits(p *plan.Plan, now time.Time) {
	for hash := range r.pastSnapshots {
		if !p.Commits[hash] && hash != r.inForce.Commit.Hash {
			delete(r.pastSnapshots, hash)
		}
	}
	for hash := range r.lostCommits {
		if !p.Commits[hash] {
			delete(r.lostCommits, hash)
			delete(r.pastRetries, hash)
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(p.Commits)) {
		r.requestPast(hash, now)
	}
}

// requestPast requests the load of a commit, unless it is loaded or its next retry is not due.
func (r *Reconciler) requestPast(hash string, now time.Time) {
	if r.pastSnapshots[hash] != nil || r.pastRequested[hash] || now.Before(r.pastRetries[hash].at) {
		return
	}
	select {
	case r.pastRequests <- hash:
		r.pastRequested[hash] = true
	default: // another commit is being loaded, after which there is another turn
	}
}
