// Package watch lists and watches the objects of a fleet on one cluster, kind by kind.
//
// A Set has a watch for each kind. The changes that the watches report are collected in Changes
// until they are drained. A watch that ends is resumed at its last version; if that is
// impossible, its kind is listed again.
package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// Config configures a Set.
type Config struct {
	Cluster string
	// Restarts counts failed watches, by cluster.
	Restarts *series.Vec
	Log      *slog.Logger
	// Expressions are the availability expressions of the desired objects.
	Expressions *availability.Expressions
	// Interrupted is called by the goroutines of watches when one fails, or ends before its time: the
	// API server may have been restarted.
	Interrupted func()
}

// A Set watches kinds of one cluster. Only one goroutine may start and end watches.
type Set struct {
	cfg  Config
	conn *connection.Conn
	// Changes has the changes that the watches reported.
	Changes *Changes
	kinds   []*Kind
	// firsts wakes WaitForLists; its capacity is one.
	firsts  chan struct{}
	running sync.WaitGroup
	// pace limits how much all watches read: decoding events without end would take a processor from
	// the other clusters.
	pace *rate.Limiter
}

// The watches of a cluster may read maxBurst bytes at once, and eventRate bytes per second for longer.
// maxBurst must not be less than the largest event.
const (
	eventRate = 4 << 20
	maxBurst  = 64 << 20
)

// New returns a set without watches.
func New(conn *connection.Conn, cfg Config) *Set {
	return &Set{cfg: cfg, conn: conn, Changes: newChanges(conn.Memory()), firsts: make(chan struct{}, 1), pace: rate.NewLimiter(eventRate, maxBurst)}
}

// All returns the watches. The result is valid until a watch is started or ended.
func (w *Set) All() []*Kind { return w.kinds }

// Wait waits until watches whose context is done have ended.
func (w *Set) Wait() { w.running.Wait() }

// Reconnect makes the watches resume over a new connection.
func (w *Set) Reconnect() {
	for _, k := range w.kinds {
		k.reconnect()
	}
}

// WaitForLists gives new watches time for their first list, so that existing objects are known
// before anything is written. It reports whether, before the timeout, each kind was listed or
// found to be forbidden.
func (w *Set) WaitForLists(ctx context.Context, started []*Kind, timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for slices.ContainsFunc(started, func(k *Kind) bool { return !k.synced.Load() && !k.refused.Load() }) {
		select {
		case <-w.firsts:
		case <-timer.C:
			for _, k := range started {
				if !k.synced.Load() && !k.refused.Load() {
					w.cfg.Log.Warn("kind cannot be watched; changes by others will not be noticed until it can", "cluster", w.cfg.Cluster, "kind", k.GVK.String())
				}
			}
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Start lists a kind and watches it until ctx is done or End is called. whole says that whole
// objects are needed, and not only their metadata.
func (w *Set) Start(ctx context.Context, gvk schema.GroupVersionKind, res connection.Resource, whole bool) *Kind {
	k := NewKind(gvk, res)
	k.Full, k.expressions = whole || health.NeedsStatus(gvk), w.cfg.Expressions
	w.kinds = append(w.kinds, k)
	ctx, k.Stop = context.WithCancel(ctx)
	w.running.Go(func() { w.follow(ctx, k) })
	return k
}

// Of returns the watch of a kind; nil if there is none.
func (w *Set) Of(gvk schema.GroupVersionKind) *Kind {
	for _, k := range w.kinds {
		if k.GVK == gvk {
			return k
		}
	}
	return nil
}

// Refuses reports whether some kind may not be listed.
func (w *Set) Refuses() bool { return slices.ContainsFunc(w.kinds, (*Kind).Refused) }

// AllowOpen lets the watches of new kinds be opened after their first list. During a pass nobody
// could process their events, and sending the events about the writes of that pass would cost the
// server most.
func (w *Set) AllowOpen() {
	for _, k := range w.kinds {
		k.allowOpen()
	}
}

// End stops a watch. Its later events are not recorded.
func (w *Set) End(k *Kind) {
	k.Stop()
	w.Changes.retire(k)
	w.kinds = slices.DeleteFunc(w.kinds, func(o *Kind) bool { return o == k })
}
