package member

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// However many clusters there are, only a few are connected at a time. Those that do not answer
// delay the connections of others by at most a second, and their writes not at all.
func TestFewConnectAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		limit := make(chan struct{}, 2)
		var connecting atomic.Int32
		for range 5 {
			a := New(Config{
				Name: "silent", Arrivals: limit, Limit: make(chan struct{}), Encoder: NewEncoder("fleet", ""), Log: slog.New(slog.DiscardHandler), Report: func(ledger.Observation) {},
				Connect: func(ctx context.Context) (*rest.Config, error) {
					connecting.Add(1)
					<-ctx.Done()
					return nil, errors.New("no credentials")
				},
			})
			go a.Run(ctx) //nolint:errcheck // it ends without one
		}
		synctest.Wait()
		if n := connecting.Load(); n != 2 {
			t.Errorf("%d connect at a time", n)
		}
		retry.Sleep(ctx, lateAnswer)
		synctest.Wait()
		if n := connecting.Load(); n != 4 {
			t.Errorf("%d connect after a while", n)
		}
		cancel()
		synctest.Wait()
		if len(limit) != 0 {
			t.Errorf("%d places are not given back", len(limit))
		}
	})
}

// A cluster that has stopped answering takes no slot of the common limit for the tasks that it
// skips.
func TestCutOffClusterTakesNoSlots(t *testing.T) {
	s := sessionWith(t, Config{Limit: make(chan struct{})}, &rest.Config{Host: "http://127.0.0.1:1"})
	for !s.conn.CutOff() {
		s.conn.RecordResult(errors.New("no answer")) //nolint:errcheck // it is counted
	}
	done := make(chan []outcome, 1)
	go func() { done <- s.applier.runWave(t.Context(), make([]task, 2*s.cfg.Concurrency)) }()
	select {
	case out := <-done:
		for _, o := range out {
			if !errors.Is(o.err, errSilent) {
				t.Errorf("a skipped task: %v", o.err)
			}
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for a slot")
	}
}
