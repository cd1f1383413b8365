package member

import (
	"context"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// A cluster has the connection to a member cluster, and the caches and watches that read it. All parts of a session share it, and none
// replaces its fields.
type cluster struct {
	cfg    *Config
	conn   *connection.Conn
	kinds  *discovery.Kinds
	finder *discovery.Finder
	watch  *watch.Set
	// store is where the inventories are.
	store *inventory.Store
	// live are the objects that are known to exist, from watches and our own writes. The recorder keeps them.
	live observed.View
	// pods says why workloads are not available.
	pods *pods.Tracker
}

// present returns the live object as its watch knows it or, without a watch, as the server
// returns it.
func (c *cluster) present(ctx context.Context, it *inventory.Item) (*observed.Object, error) {
	if l := c.live.Of(it.ID()); l != nil || c.watch.Of(it.GroupVersionKind()).Complete() {
		return l, nil
	}
	res, served, err := c.finder.Serves(ctx, it.GroupVersionKind())
	if err != nil || !served {
		return nil, err
	}
	found, err := c.conn.Read(ctx, res, it.ID())
	if err != nil || found == nil {
		return nil, err
	}
	return observed.Of(found), nil
}

// parallelCalls are calls for the numbers below some n. The goroutine of the caller calls start and
// done, other goroutines call do.
type parallelCalls struct {
	// start is called in order, before do. If it returns false, do is not called for the number.
	// Nil means that do is called for all numbers.
	start func(i int) bool
	do    func(i int)
	// done is called in order, after do or after start returned false. Later calls of do may
	// still be running. Nil means that nothing is called.
	done func(i int)
}

// inParallel makes some calls, several at a time, and returns when all have returned. A slot of the
// common limit is acquired before a goroutine is started, since thousands of clusters may wait for
// it.
func (c *cluster) inParallel(ctx context.Context, n int, calls parallelCalls) {
	type call struct {
		i       int
		release func()
	}
	started, ended := make(chan call, c.cfg.Concurrency), make(chan int, c.cfg.Concurrency)
	returned, reported, running, workers := make([]bool, n), 0, 0, 0
	report := func() {
		for ; reported < n && returned[reported]; reported++ {
			if calls.done != nil {
				calls.done(reported)
			}
		}
	}
	for i := range n {
		if running == c.cfg.Concurrency {
			returned[<-ended] = true
			running--
		}
		if calls.start == nil || calls.start(i) {
			started <- call{i, acquireSlot(ctx, c.cfg.Limit, lateAnswer)}
			running++
		} else {
			returned[i] = true
		}
		if workers < running { // a goroutine for each call would have to grow its stack
			workers++
			go func() {
				for call := range started {
					calls.do(call.i)
					call.release()
					ended <- call.i
				}
			}()
		}
		report()
	}
	close(started)
	for range running {
		returned[<-ended] = true
		report()
	}
}

// lateAnswer is how long a write keeps its slot of a common limit. A cluster that does not
// answer must not keep the slots from all others.
const lateAnswer = time.Second

// acquireSlot acquires a slot of a common limit, and returns the function that releases it. It is released after longest in any case.
func acquireSlot(ctx context.Context, bound chan struct{}, longest time.Duration) func() {
	if bound == nil {
		return func() {}
	}
	select {
	case bound <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-bound })
	late := time.AfterFunc(longest, free)
	return func() {
		late.Stop()
		free()
	}
}
