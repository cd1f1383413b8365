package member

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
)

// A cluster is the connection to a member cluster, and what was observed through it.
type cluster struct {
	cfg    *Config
	conn   *connection.Conn
	kinds  *discovery.Kinds
	finder *discovery.Finder
	watch  *watch.Set
	// live are the objects that are known to exist, from watches and our own writes.
	live observed.Objects
	// health is the result of the last probe.
	health probe.Result
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

// watchedKinds returns the kinds that are watched.
func (c *cluster) watchedKinds() []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	for _, k := range c.watch.All() {
		gvks = append(gvks, k.GVK)
	}
	return gvks
}

// inParallel calls do for the numbers below n, several at a time, and returns when all calls have
// returned. A slot of the common limit is acquired before a goroutine is started, since thousands
// of clusters may wait for it. Numbers that skip reports get none, and do is not called for them;
// nil stands for no such numbers.
func (c *cluster) inParallel(ctx context.Context, n int, skip func(i int) bool, do func(i int)) {
	type call struct {
		i       int
		release func()
	}
	slots, calls := make(chan struct{}, c.cfg.Concurrency), make(chan call, c.cfg.Concurrency)
	var workers sync.WaitGroup
	started := 0
	for i := range n {
		slots <- struct{}{}
		if skip != nil && skip(i) {
			<-slots
			continue
		}
		calls <- call{i, acquireSlot(ctx, c.cfg.Limit)}
		if started++; started <= c.cfg.Concurrency { // a goroutine for each call would have to grow its stack
			workers.Go(func() {
				for next := range calls {
					do(next.i)
					next.release()
					<-slots
				}
			})
		}
	}
	close(calls)
	workers.Wait()
}

// lateAnswer is how long a write keeps its slot of a common limit. A cluster that does not
// answer must not keep the slots from all others.
const lateAnswer = time.Second

// acquireSlot acquires a slot of a common limit, and returns the function that releases it.
func acquireSlot(ctx context.Context, bound chan struct{}) func() {
	if bound == nil {
		return func() {}
	}
	select {
	case bound <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-bound })
	late := time.AfterFunc(lateAnswer, free)
	return func() {
		late.Stop()
		free()
	}
}
