package memory

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// However many members answer slowly and without end, another one waits only for moments, and all together
// never hold more than the limit.
func TestSlowMembersDoNotKeepTheMemoryFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := New(1600 * mib) // 10 medium leases
		ctx, cancel := context.WithCancel(t.Context())
		var held, most atomic.Int32
		for range 50 {
			hostile := pool.Share()
			for range 2 {
				go func() {
					for ctx.Err() == nil {
						answer, end := context.WithCancel(ctx)
						l, err := hostile.Lease(ctx, Medium, end)
						if err != nil {
							return
						}
						most.Store(max(most.Load(), held.Add(1)))
						select {
						case <-answer.Done():
						case <-time.After(30 * time.Second):
						}
						end()
						held.Add(-1)
						l.Release()
					}
				}()
			}
		}
		time.Sleep(2 * time.Minute) // until it is known of each how much it uses
		healthy := pool.Share()
		for range 20 {
			time.Sleep(time.Second)
			start := time.Now()
			l, err := healthy.Lease(ctx, Medium, func() { t.Error("the lease of the healthy member was revoked") })
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited > undisturbed+leaseWait {
				t.Errorf("the healthy member has waited for %v", waited)
			}
			time.Sleep(100 * time.Millisecond)
			l.Release()
		}
		if most.Load() > 10 {
			t.Errorf("%d leases at the same time", most.Load())
		}
		cancel()
		synctest.Wait()
	})
}

// Members that all answer in time are never interrupted, however long the queue is.
func TestQueuedMembersAreNotInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := New(1600 * mib)
		var all sync.WaitGroup
		for range 1000 {
			s := pool.Share()
			all.Go(func() {
				l, err := s.Lease(t.Context(), Medium, func() { t.Error("revoked") })
				if err != nil {
					t.Error(err)
				}
				time.Sleep(500 * time.Millisecond)
				l.Release()
			})
		}
		all.Wait()
	})
}

// Once too much is kept, the member that keeps most is refused, and nobody else.
func TestWhoKeepsMostIsRefused(t *testing.T) {
	pool := New(1000 * mib) // 400 MiB
	shares := map[string]*Share{}
	for name, bytes := range map[string]int64{"a": 30, "b": 30, "hostile": 300} {
		shares[name] = pool.Share()
		if !shares[name].Keep(bytes * mib) {
			t.Fatalf("%s was refused", name)
		}
	}
	other := pool.Share()
	if other.Keep(350 * mib) {
		t.Error("the second one was not refused")
	}
	other.Reset()
	if !shares["a"].Keep(60*mib) || !shares["b"].Keep(1) {
		t.Error("one that keeps little was refused")
	}
	if shares["hostile"].Keep(1) {
		t.Error("the one that keeps most was not refused")
	}
	shares["hostile"].Close()
	if !shares["b"].Keep(250 * mib) {
		t.Error("what is dropped still counts")
	}
}

// Without a pool, nothing is limited.
func TestNoPool(t *testing.T) {
	var pool *Pool
	s := pool.Share()
	defer s.Close()
	if l, err := s.Lease(t.Context(), Large, nil); err != nil || !s.Keep(1<<50) {
		t.Errorf("%v, %v", l, err)
	} else {
		l.Release()
	}
	s.Reset()
}

// A pool has room for at least one answer of each size, however small the limit.
func TestSmallestPool(t *testing.T) {
	for _, limit := range []int64{0, 100 * mib, 4 << 30, math.MaxInt64} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := New(limit).Share()
			for _, size := range []Size{Medium, Large} {
				if _, err := s.Lease(t.Context(), size, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Who gives up waiting leaves the queue.
func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0).Share()
		first, _ := s.Lease(t.Context(), Large, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.Lease(ctx, Large, nil); err == nil {
			t.Error("two leases")
		}
		first.Release()
		first.Release()
		if l, err := s.Lease(t.Context(), Large, nil); err != nil || len(s.pool.queue) > 0 {
			t.Errorf("%v, %v", l, err)
		}
	})
}
