package poll

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
)

// First and Last are the shortest and longest delay before a retry. The delay doubles with each
// failure.
const First, Last = 10 * time.Second, 10 * time.Minute

// A Backoff has the time of the next retry and the last error. The zero value has not failed.
type Backoff struct {
	problem string
	since   time.Time
	retry   time.Time
	// serverUntil is the time until which the server asks to send no request; the time of the failure
	// if it does not ask.
	serverUntil time.Time
	failures    int
}

// Fail records an error, and reports whether it differs from the previous one. If the server
// asks for a longer delay, that delay is used.
func (b *Backoff) Fail(err error, now time.Time) (changed bool) {
	if b.failures == 0 {
		b.since = now
	}
	problem := forge.Reason(err)
	changed = b.problem != problem
	b.problem = problem
	wait := retryAfter(err)
	b.serverUntil, b.retry = now.Add(wait), now.Add(max(wait, retryafter.Failures(b.failures+1, First, Last)))
	b.failures++
	return changed
}

// Record records the result of requests, and logs when they begin to fail, fail for another reason, or succeed again. The end of
// ctx is no failure.
func (b *Backoff) Record(ctx context.Context, err error, now time.Time, log *slog.Logger, failing, succeeding string) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if b.Fail(err, now) {
			log.Warn(failing+"; trying again", "err", err)
		}
	case b.Succeed():
		log.Info(succeeding)
	}
}

// Succeed forgets the errors, and reports whether there were any.
func (b *Backoff) Succeed() (failed bool) {
	failed = b.failures > 0
	*b = Backoff{}
	return failed
}

// Wait returns the time until the next retry; zero or less if a request may be sent now.
func (b *Backoff) Wait(now time.Time) time.Duration { return b.retry.Sub(now) }

// ServerDelay returns the rest of the delay that the server asked for; zero or less if there is
// none.
func (b *Backoff) ServerDelay(now time.Time) time.Duration { return b.serverUntil.Sub(now) }

// Failures returns the number of failures since the last success.
func (b *Backoff) Failures() int { return b.failures }

// String returns the last error and the time since when requests fail; empty if they do not.
func (b *Backoff) String() string {
	if b.failures == 0 {
		return ""
	}
	return "since " + b.since.UTC().Format(time.RFC3339) + ": " + b.problem
}

// retryAfter returns the delay that a server asks for.
func retryAfter(err error) time.Duration {
	if answer, ok := errors.AsType[*forge.StatusError](err); ok {
		return answer.RetryAfter
	}
	if answer, ok := errors.AsType[*remote.HTTPError](err); ok {
		return answer.RetryAfter
	}
	return 0
}
