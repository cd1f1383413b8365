// Package retry schedules repeated attempts, and limits the log lines about them.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff counts consecutive failures.
type Backoff int

// Next counts a failure and returns the delay after it: first, doubled with each failure up to
// most, less a random part of up to a quarter so that retries are spread.
func (b *Backoff) Next(first, most time.Duration) time.Duration {
	d := min(first<<min(int(*b), 30), most)
	if d <= 0 {
		d = most
	}
	*b++
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
