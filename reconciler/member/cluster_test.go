package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
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
				Name: "silent", Arrivals: limit, Limit: make(chan struct{}), Encoder: apply.NewEncoder("fleet", ""), Log: slog.New(slog.DiscardHandler), Report: func(protocol.Observation) {},
				Connect: func(ctx context.Context) (*rest.Config, error) {
					connecting.Add(1)
					<-ctx.Done()
					return nil, errors.New("no credentials")
				},
			})
			go a.Run(ctx)
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
	web := api.PlacementKey{Name: "web"}
	var tasks []apply.Task
	for i := range 2 * s.cfg.Concurrency {
		m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "app", "name": strconv.Itoa(i)}})
		tasks = append(tasks, apply.Task{Object: desired.Object{Placement: web, Manifest: m}})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.applier.runWave(t.Context(), tasks, map[api.PlacementKey]bool{})
	}()
	select {
	case <-done:
		for _, task := range tasks {
			if tr := s.failure(task.Manifest.ID); tr.Cond.Message() != apply.Skipped(task).Cond.Message() {
				t.Errorf("a skipped task: %+v", tr)
			}
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for a slot")
	}
}

// Calls run several at a time. Whatever the order in which they return, done is called in their
// order, as soon as the call and those before it have returned.
func TestInParallel(t *testing.T) {
	const n, few = 20, 3
	slow := func(i int) time.Duration {
		if i == 0 {
			return 30 * time.Second
		}
		return time.Second
	}
	odd := func(i int) bool { return i%2 == 1 }
	for name, test := range map[string]struct {
		start func(i int) bool
		take  func(i int) time.Duration // how long a call takes
		took  time.Duration
	}{
		"all take the same time": {take: func(int) time.Duration { return time.Second }, took: 7 * time.Second},
		"the first is slow":      {take: slow, took: 30 * time.Second},
		"some are not started":   {start: odd, take: func(int) time.Duration { return time.Second }, took: 4 * time.Second},
		"none is started":        {start: func(int) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{cfg: &Config{Concurrency: few}}
				var running, most atomic.Int32
				var called [n]atomic.Bool
				var started, done []int
				began := time.Now()
				c.inParallel(t.Context(), n, parallelCalls{
					start: func(i int) bool {
						started = append(started, i)
						return test.start == nil || test.start(i)
					},
					do: func(i int) {
						if now := running.Add(1); now > most.Load() {
							most.Store(now)
						}
						time.Sleep(test.take(i))
						running.Add(-1)
						called[i].Store(true)
					},
					done: func(i int) {
						if runs := test.start == nil || test.start(i); called[i].Load() != runs {
							t.Errorf("%d is done, and was called: %t", i, !runs)
						}
						done = append(done, i)
					},
				})
				var all []int
				for i := range n {
					all = append(all, i)
				}
				if !slices.Equal(started, all) || !slices.Equal(done, all) {
					t.Errorf("started %v, done %v", started, done)
				}
				if took := time.Since(began); took != test.took || most.Load() > few || most.Load() < few && test.took > 0 {
					t.Errorf("it took %s, want %s, with at most %d at a time", took, test.took, most.Load())
				}
			})
		})
	}
}

// Outcomes are recorded while later calls are still running.
func TestDoneWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{cfg: &Config{Concurrency: 2}}
		var at []time.Duration
		began := time.Now()
		c.inParallel(t.Context(), 4, parallelCalls{
			do:   func(i int) { time.Sleep(time.Duration(i+1) * time.Second) },
			done: func(int) { at = append(at, time.Since(began)) },
		})
		if want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("done at %v, want %v", at, want)
		}
	})
}
