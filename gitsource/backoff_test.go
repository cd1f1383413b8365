package gitsource

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The delay grows with the failures, stays within its bounds, and is never shorter than the
// server asked for.
func TestThePauseGrowsAndIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "interval"))
		b := newBackoff(interval)
		failures := rapid.IntRange(0, 10_000).Draw(t, "failures")
		retryAfter := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "retryAfter"))
		jitter := rapid.Float64Range(0, 1).Draw(t, "jitter")
		got := b.next(failures, retryAfter, jitter)
		if got < retryAfter {
			t.Fatalf("waits %s, the server asked for %s", got, retryAfter)
		}
		if failures > 0 && got > retryAfter && got > max(interval, time.Minute) {
			t.Fatalf("waits %s, at most %s", got, b.most)
		}
		if failures == 0 && retryAfter == 0 && (got < interval*95/100-1 || got > interval*105/100+1) {
			t.Fatalf("waits %s without a failure, the interval is %s", got, interval)
		}
		if failures > 0 && b.next(failures+1, 0, 0.5) < b.next(failures, 0, 0.5) {
			t.Fatal("one more failure waits less")
		}
	})
}

// The first retries come soon, so that a short outage does not cost a whole polling interval.
func TestTheFirstRetryIsSoon(t *testing.T) {
	b := newBackoff(30 * time.Second)
	var got []time.Duration
	for failures := range 12 {
		got = append(got, b.next(failures, 0, 0.5))
	}
	want := []time.Duration{30, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60}
	for i := range want {
		if got[i] != want[i]*time.Second {
			t.Errorf("after %d failures %s, want %s", i, got[i], want[i]*time.Second)
		}
	}
}

// A request for a poll ends the delay, but not before the time that the server asked for is over.
func TestARequestedPollRespectsTheServer(t *testing.T) {
	tests := map[string]struct {
		request, retryAfter time.Duration
		least, most         time.Duration
	}{
		"no request":               {0, 0, 28 * time.Second, 32 * time.Second},
		"requested":                {5 * time.Second, 0, 5 * time.Second, 5 * time.Second},
		"requested at once":        {time.Millisecond, 0, 200 * time.Millisecond, 200 * time.Millisecond},
		"asked to wait":            {0, time.Hour, time.Hour, time.Hour},
		"asked to wait, requested": {time.Second, time.Hour, time.Hour, time.Hour},
		"asked to wait a little":   {0, time.Second, 28 * time.Second, 32 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Repo{backoff: newBackoff(30 * time.Second), pollRequests: make(chan struct{}, 1)}
				if test.request > 0 {
					for range 3 {
						time.AfterFunc(test.request, r.RequestPoll)
					}
				}
				start := time.Now()
				r.wait(context.Background(), test.retryAfter)
				if got := time.Since(start); got < test.least || got > test.most {
					t.Errorf("waited %s, want %s to %s", got, test.least, test.most)
				}
			})
		})
	}
}
