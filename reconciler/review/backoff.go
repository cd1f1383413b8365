package review

import (
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// The bounds of the time between two tries after an error.
const firstRetry, lastRetry = 10 * time.Second, 10 * time.Minute

// A backoff is when something that failed is tried again.
type backoff struct {
	retry    time.Time
	failures int
	problem  string
}

// failed notes an error, and reports whether it is another one than before.
func (b *backoff) failed(err error, now time.Time) bool {
	wait := min(lastRetry, firstRetry<<min(b.failures, 10))
	if answer, ok := errors.AsType[*forge.StatusError](err); ok {
		wait = max(wait, answer.RetryAfter)
	}
	another := b.problem != err.Error()
	b.retry, b.problem = now.Add(wait), err.Error()
	b.failures++
	return another
}

// succeeded forgets the errors, and reports whether there were any.
func (b *backoff) succeeded() bool {
	had := b.failures > 0
	*b = backoff{}
	return had
}

// wait is how long there is no other try; zero or less if it may be now.
func (b *backoff) wait(now time.Time) time.Duration { return b.retry.Sub(now) }
