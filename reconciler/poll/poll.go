// Package poll has what all loops on a forge share.
//
// A [Loop] makes a pass in each interval, and soon after it was woken by a webhook. A [Backoff] says how long failed requests are
// not sent again, and [Problems] what is reported about them.
package poll

import (
	"context"
	"sync/atomic"
	"time"
)

// Spacing is the minimum time between two passes of a loop, however often it is woken.
const Spacing = 5 * time.Second

// A Loop makes passes.
type Loop chan struct{}

// NewLoop returns a loop that makes no passes until it runs.
func NewLoop() Loop { return make(Loop, 1) }

// Wake causes a pass soon. It never blocks, and any goroutine may call it.
func (l Loop) Wake() {
	select {
	case l <- struct{}{}:
	default:
	}
}

// Run makes passes until ctx is done. A pass returns how long the next one has to wait at least.
func (l Loop) Run(ctx context.Context, interval time.Duration, pass func(ctx context.Context, now time.Time) time.Duration) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-l:
			if wait := Spacing - time.Since(last); wait > 0 {
				timer.Reset(wait)
				continue
			}
		case <-timer.C:
		}
		last = time.Now()
		timer.Reset(max(interval, pass(ctx, last)))
	}
}

// Problems are what cannot be done on a forge, since when and why. Any goroutine may use them; the zero value has none.
type Problems struct{ list atomic.Pointer[[]string] }

// Set replaces the problems.
func (p *Problems) Set(list []string) { p.list.Store(&list) }

// List returns the problems.
func (p *Problems) List() []string {
	if list := p.list.Load(); list != nil {
		return *list
	}
	return nil
}
