package reconciler

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func TestTheLoopRestsFromLongTurns(t *testing.T) {
	start := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		turns [][2]time.Duration // when each began and ended
		rest  time.Duration
	}{
		"a short one":                   {[][2]time.Duration{{0, 20 * ms}}, 0},
		"some short ones":               {[][2]time.Duration{{0, 50 * ms}, {50 * ms, 100 * ms}}, 0},
		"short ones without a pause":    {[][2]time.Duration{{0, 50 * ms}, {50 * ms, 100 * ms}, {100 * ms, 150 * ms}}, 150 * ms},
		"a long one":                    {[][2]time.Duration{{0, time.Second}}, 2700 * ms},
		"another one once it rested":    {[][2]time.Duration{{0, time.Second}, {3700 * ms, 4700 * ms}}, 3000 * ms},
		"a short one long after":        {[][2]time.Duration{{0, time.Second}, {time.Minute, time.Minute + 20*ms}}, 0},
		"a short one while it rests":    {[][2]time.Duration{{0, time.Second}, {1300 * ms, 1310 * ms}}, 2430 * ms},
		"nothing owed before the first": {nil, 0},
	} {
		var p pace
		for _, turn := range test.turns {
			p.worked(at(turn[0]), at(turn[1]))
		}
		if got := p.rest(); got != test.rest {
			t.Errorf("%s: rests %s, want %s", name, got, test.rest)
		}
	}
}

// While members report all the time, the loop works a bounded share of it. What else happens is not delayed, nor is a
// report after a quiet time.
func TestReportsDoNotKeepTheLoopBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newSettled(t)
		const took = 200 * time.Millisecond
		var turns atomic.Int64
		epoch, began := c.now, time.Now()
		now := func() time.Time { return epoch.Add(time.Since(began)) }
		c.cfg.Now, c.cfg.Store, c.cfg.Source = now, ledger.Memory(), quietSource{}
		c.cfg.Member = func(*hub.Cluster, func(ledger.Observation)) Member { return idle{} }
		c.cfg.Publish = func(*status.Report) {
			turns.Add(1)
			time.Sleep(took)
		}
		ended := make(chan struct{})
		go func() {
			c.loop(ctx)
			close(ended)
		}()
		since := func(do func()) int {
			before := turns.Load()
			do()
			return int(turns.Load() - before)
		}
		report := func() {
			c.events.observe(ledger.ClusterSeen{Cluster: "east", At: now(), Healthy: true, Properties: map[string]string{"p": now().String()}})
		}
		time.Sleep(10 * time.Second)
		const seconds = 60
		flood := since(func() {
			for range seconds * 100 {
				report()
				time.Sleep(10 * time.Millisecond)
			}
		})
		if most := seconds*5/loopShare + 2; flood > most || flood < most/2 {
			t.Errorf("%d turns of %s in %d s, want at most %d", flood, took, seconds, most)
		}
		if got := since(func() { c.events.trigger(); time.Sleep(time.Millisecond) }); got != 1 {
			t.Errorf("%d turns right after something else happened, want 1", got)
		}
		time.Sleep(10 * time.Second)
		if got := since(func() { report(); time.Sleep(time.Millisecond) }); got != 1 {
			t.Errorf("%d turns right after a report, want 1", got)
		}
		cancel()
		<-ended
	})
}
