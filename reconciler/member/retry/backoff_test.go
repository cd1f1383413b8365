package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The delay doubles from first to most, never exceeds most, and is random, so that many clients
// do not retry at the same time.
func TestBackoffGrows(t *testing.T) {
	var b Backoff
	want := time.Second
	for n := range 100 {
		got := b.Next(time.Second, time.Minute)
		if got > want || got < want*3/4 {
			t.Errorf("after %d failures: %s, want %s less up to a quarter", n, got, want)
		}
		want = min(2*want, time.Minute)
	}
	seen := map[time.Duration]bool{}
	for range 20 {
		seen[new(Backoff).Next(time.Second, time.Minute)] = true
	}
	if len(seen) < 10 {
		t.Errorf("20 agents wait %d different times", len(seen))
	}
}

// A wait ends with its context.
func TestSleepEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		Sleep(ctx, time.Hour)
		if d := time.Since(start); d != time.Second {
			t.Errorf("slept %s", d)
		}
		Sleep(t.Context(), time.Minute)
		if d := time.Since(start); d != time.Second+time.Minute {
			t.Errorf("slept %s", d)
		}
	})
}
