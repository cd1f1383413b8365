package reconciler

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
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
			p.worked(at(turn[0]), at(turn[1]), turn[1]-turn[0])
		}
		if got := p.rest(); got != test.rest {
			t.Errorf("%s: rests %s, want %s", name, got, test.rest)
		}
	}
}

// turnTime is how long a turn of a timedLoop takes.
const turnTime = 200 * time.Millisecond

// A timedLoop is a loop in virtual time.
type timedLoop struct {
	*historyScene
	turns *atomic.Int64
}

// since returns how many turns were taken in the meantime.
func (l timedLoop) since(do func()) int {
	before := l.turns.Load()
	do()
	return int(l.turns.Load() - before)
}

// report observes something new about a cluster.
func (l timedLoop) report() {
	now := l.cfg.Now()
	l.inbox.observe(protocol.ClusterSeen{Cluster: "east", At: now, Healthy: true, Properties: map[string]string{"p": now.String()}})
}

// flood does something a hundred times a second for a minute, and returns how many turns were taken.
func (l timedLoop) flood(do func()) int {
	return l.since(func() {
		for range floodSeconds * 100 {
			do()
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// A flood lasts floodSeconds, in which a loop that never rests takes unpaced turns, and one that rests pacedTurns.
const (
	floodSeconds = 60
	unpaced      = floodSeconds * int(time.Second/turnTime)
	pacedTurns   = unpaced/loopShare + 2
)

// runTimed runs a test with a loop. If saves take a while, there is one in every turn.
func runTimed(t *testing.T, save time.Duration, test func(t *testing.T, l timedLoop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := timedLoop{newSettled(t), new(atomic.Int64)}
		epoch, began := l.now, time.Now()
		l.cfg.Now, l.cfg.Store, l.cfg.Source = func() time.Time { return epoch.Add(time.Since(began)) }, slowStore{ledger.Memory(), save}, quietSource{}
		l.cfg.Member = func(*hub.Cluster, func(protocol.Observation)) Member { return idle{} }
		l.cfg.Publish = func(*status.Report) {
			l.turns.Add(1)
			time.Sleep(turnTime)
			if save > 0 {
				l.saver.save(l.ledger) // as before works are sent
			}
		}
		ended := make(chan struct{})
		go func() {
			l.loop(ctx)
			close(ended)
		}()
		time.Sleep(10 * time.Second)
		test(t, l)
		cancel()
		<-ended
	})
}

// A slowStore waits for its disk.
type slowStore struct {
	ledger.Store
	takes time.Duration
}

func (s slowStore) Save(l *ledger.Ledger) error {
	time.Sleep(s.takes)
	return s.Store.Save(l)
}

// While members report or people decide about drift all the time, the loop works a bounded share of it. What else happens is not
// delayed, nor is a report after a quiet time.
func TestReportsDoNotKeepTheLoopBusy(t *testing.T) {
	runTimed(t, 0, func(t *testing.T, l timedLoop) {
		decide := func() {
			l.SetDriftDecisions(map[string]protocol.DriftDecisions{"east": {protocol.DriftKey{}: {Message: l.cfg.Now().String()}}})
		}
		for what, do := range map[string]func(){"reports": l.report, "decisions about drift": decide} {
			if got := l.flood(do); got > pacedTurns || got < pacedTurns/2 {
				t.Errorf("%s: %d turns of %s in %d s, want at most %d", what, got, turnTime, floodSeconds, pacedTurns)
			}
			if got := l.since(func() { l.inbox.trigger(); time.Sleep(time.Millisecond) }); got != 1 {
				t.Errorf("%s: %d turns right after something else happened, want 1", what, got)
			}
			time.Sleep(10 * time.Second)
			if got := l.since(func() { do(); time.Sleep(time.Millisecond) }); got != 1 {
				t.Errorf("%s: %d turns right after one, want 1", what, got)
			}
		}
	})
}

// A turn that was asked for costs the members' reports no time: a report after it is seen at once.
func TestOrdersDoNotDelayReports(t *testing.T) {
	runTimed(t, 0, func(t *testing.T, l timedLoop) {
		for range 10 {
			l.inbox.trigger()
			time.Sleep(turnTime)
		}
		time.Sleep(10 * time.Millisecond)
		if got := l.since(func() { l.report(); time.Sleep(time.Millisecond) }); got != 1 {
			t.Errorf("%d turns right after a report, want 1", got)
		}
	})
}

// The loop does not rest from waiting for a slow disk.
func TestSlowSavesAreNoWork(t *testing.T) {
	runTimed(t, 3*time.Second, func(t *testing.T, l timedLoop) {
		flood := l.flood(l.report)
		if least := floodSeconds / 5; flood < least { // each turn takes a little more than three seconds
			t.Errorf("%d turns of %s in %d s, want at least %d", flood, turnTime, floodSeconds, least)
		}
	})
}
