// Package retry schedules repeated attempts, and limits the log lines about them.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/retryafter"
)

// A Backoff counts consecutive failures.
type Backoff int

// Next counts a failure and returns the delay after it: first, doubled with each failure up to
// most, less a random part of up to a quarter so that retries are spread.
func (b *Backoff) Next(first, most time.Duration) time.Duration {
	*b++
	d := retryafter.Failures(int(*b), first, most)
	return d - rand.N(d/4+1)
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// logInterval is the time between two log lines about the same failure.
const logInterval = time.Hour

// A LogLimiter limits how often a failure that is retried is logged: when it begins, when it
// changes, and every logInterval. The zero value has logged nothing.
type LogLimiter struct {
	what string
	at   time.Time
}

// Due reports whether a failure is to be logged now, and records it as logged.
func (l *LogLimiter) Due(what string) bool {
	now := time.Now()
	if l.what == what && now.Sub(l.at) < logInterval {
		return false
	}
	*l = LogLimiter{what, now}
	return true
}

// Earlier returns the earlier of two times; zero means none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
