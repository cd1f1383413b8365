// Package backoff spaces out the retries of requests to a forge or a Git server that fail.
package backoff

import (
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// First and Last bound the time between two tries after an error. It doubles with each.
const First, Last = 10 * time.Second, 10 * time.Minute

// A Backoff is when something that fails is tried again, and what its last error was. The
// zero value has not failed.
type Backoff struct {
	problem string
	since   time.Time
	retry   time.Time
	// asked is until when the server asks to be left alone; zero if it does not.
	asked    time.Time
	failures int
}

// Fail notes an error, and reports whether it is another one than before. A server that asks
// to be left alone for longer is.
func (b *Backoff) Fail(err error, now time.Time) (changed bool) {
	if b.failures == 0 {
		b.since = now
	}
	changed = b.problem != err.Error()
	b.problem = err.Error()
	b.asked = time.Time{}
	if wait := retryAfter(err); wait > 0 {
		b.asked = now.Add(wait)
	}
	b.retry = now.Add(max(retryAfter(err), min(Last, First<<min(b.failures, 10))))
	b.failures++
	return changed
}

// Succeed forgets the errors, and reports whether there were any.
func (b *Backoff) Succeed() (failed bool) {
	failed = b.failures > 0
	*b = Backoff{}
	return failed
}

// Wait is how long there is no other try; zero or less if it may be now.
func (b *Backoff) Wait(now time.Time) time.Duration { return b.retry.Sub(now) }

// LeftAlone is how long the server asks to be left alone; zero or less if it does not.
func (b *Backoff) LeftAlone(now time.Time) time.Duration { return b.asked.Sub(now) }

// Failures is how often it has failed since it last succeeded.
func (b *Backoff) Failures() int { return b.failures }

// String says since when it fails and with which error; empty if it does not.
func (b *Backoff) String() string {
	if b.failures == 0 {
		return ""
	}
	return "since " + b.since.UTC().Format(time.RFC3339) + ": " + b.problem
}

// retryAfter is how long a server asks to be left alone.
func retryAfter(err error) time.Duration {
	if answer, ok := errors.AsType[*forge.StatusError](err); ok {
		return answer.RetryAfter
	}
	if answer, ok := errors.AsType[*remote.HTTPError](err); ok {
		return answer.RetryAfter
	}
	return 0
}
