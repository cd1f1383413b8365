package gitsource

import (
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
)

// refusalLasts is how long a refused commit is not checked again although nothing has changed. It ends because keys of signers
// may be valid from some time on.
const refusalLasts = time.Hour

// A refusal is why the object of the reference was not accepted, and what this depends on: the store, the commit accepted
// before, and the keys of signers. Checking a commit can take minutes, and a poll finds the same one again and again.
type refusal struct {
	object, base plumbing.Hash
	store        *objects.Store
	keys         string
	at           time.Time
	err          error
}

// holds reports whether what was refused would be refused again.
func (f refusal) holds(found refusal) bool {
	age := found.at.Sub(f.at)
	return f.err != nil && 0 <= age && age < refusalLasts &&
		f.object == found.object && f.base == found.base && f.store == found.store && f.keys == found.keys
}

// exceeded is the object whose fetch or check has exceeded a limit last, and how often that happened in a row, whatever the object.
// It can take minutes of computing, and a poll finds the same object again and again, or another one each time. It is tried ever
// more rarely, after a minute first and then up to refusalLasts: the remote may send it in another way, or faster.
type exceeded struct {
	object plumbing.Hash
	times  int
	at     time.Time
	err    error
}

// othersWait is how long the delay grows for other objects than the one that has exceeded a limit: one of them may be the remedy.
const othersWait = 10 * time.Minute

// until returns the time before which an object is not tried.
func (e exceeded) until(object plumbing.Hash) time.Time {
	most := refusalLasts
	if object != e.object {
		most = othersWait
	}
	return e.at.Add(retryafter.Failures(e.times, time.Minute, most))
}

// An exceededError is the reason why an object is not tried before a time. The remote works.
type exceededError struct {
	exceeded
	waits plumbing.Hash // the object that is not tried
}

// Error returns the reason, and what can be done.
func (e *exceededError) Error() string {
	until := e.until(e.waits).UTC().Format(time.RFC3339)
	if e.waits != e.object {
		return fmt.Sprintf("%s was not fetched: %s; %s is not tried before %s; run gitfleet sync to try it now", e.object, e.err, e.waits, until)
	}
	return fmt.Sprintf("%s; %s is not tried again before %s; push another commit, or run gitfleet sync to retry it", e.err, e.object, until)
}

// Unwrap returns the limit or errPanicked.
func (e *exceededError) Unwrap() error { return e.err }

// A backoff computes the delay until the next poll.
type backoff struct {
	// interval is the time between successful polls.
	interval time.Duration
	// first is the delay after the first failure; it doubles with each further failure, up to
	// most: after an outage a commit is found within a minute.
	first, most time.Duration
	// minDelay is the shortest time between a poll and one that was requested.
	minDelay time.Duration
	// cloneFirst is the delay between two clones if the store is damaged again; it doubles up
	// to cloneMost.
	cloneFirst, cloneMost time.Duration
}

func newBackoff(interval time.Duration) backoff {
	return backoff{
		interval:   interval,
		first:      min(interval, 2*time.Second),
		most:       max(interval, time.Minute),
		minDelay:   200 * time.Millisecond,
		cloneFirst: time.Minute,
		cloneMost:  time.Hour,
	}
}

// next returns the delay until the next poll. failures is the number of consecutive failures,
// retryAfter the delay that the server asked for, and jitter a random number from 0 to 1.
func (b backoff) next(failures int, retryAfter time.Duration, jitter float64) time.Duration {
	wait, spread := b.interval, 0.1
	if failures > 0 {
		wait, spread = retryafter.Failures(failures, b.first, b.most), 0.5
	}
	wait += time.Duration(float64(wait) * spread * (jitter - 0.5))
	if failures > 0 {
		wait = min(wait, b.most)
	}
	return max(wait, retryAfter)
}

// clone returns the delay until the next clone, given the number of consecutive clones.
func (b backoff) clone(clones int) time.Duration {
	return retryafter.Failures(clones, b.cloneFirst, b.cloneMost)
}
