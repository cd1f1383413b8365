package daemon

import (
	"context"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"time"
)

// A throttle lowers the limit of requests in flight while goroutines wait for a processor. Many requests in flight are needed if API
// servers are slow. If they answer faster than their answers are processed, more requests only make everything else wait longer, such
// as answers to users and to Prometheus.
type throttle struct {
	// slots is a semaphore. The throttle holds some of its slots, and leaves at least some.
	slots       chan struct{}
	held, least int
}

const (
	// throttleInterval is the time between two adjustments, and idleInterval that while no slot is used.
	throttleInterval = 50 * time.Millisecond
	idleInterval     = 500 * time.Millisecond
	// No slot is taken while at most maxWaiting goroutines per processor are runnable, or no more than a quarter (waitingShare) of the
	// requests that may be in flight. Beyond that, fewer requests in flight do not make writes slower.
	maxWaiting   = 4
	waitingShare = 4
	// minSlots is the number of slots per processor that are left. With fewer, a rollout takes longer, since more often nothing can be sent
	// while an answer is processed: with 8, the first synchronization of 300 members on two processors took a fifth longer.
	minSlots = 24
	// averaged is the number of measurements that are averaged, since many goroutines may be woken at once.
	averaged = 4
)

func newThrottle(slots chan struct{}) *throttle {
	return &throttle{slots: slots, least: min(cap(slots), minSlots*runtime.GOMAXPROCS(0))}
}

// runThrottles adjusts the slots of some semaphores until ctx is done.
func runThrottles(ctx context.Context, semaphores ...chan struct{}) error {
	var all []*throttle
	for _, slots := range semaphores {
		all = append(all, newThrottle(slots))
	}
	waiting := []runtimemetrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	average := 0.0
	for {
		interval := idleInterval
		if slices.ContainsFunc(semaphores, func(slots chan struct{}) bool { return len(slots) > 0 }) {
			interval = throttleInterval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
		runtimemetrics.Read(waiting)
		average += (float64(waiting[0].Value.Uint64()) - average) / averaged
		for _, t := range all {
			t.adjust(ctx, average)
		}
	}
}

// adjust takes an eighth of the slots that requests may use if too many goroutines wait for a processor, and otherwise gives back a
// sixteenth of all.
func (t *throttle) adjust(ctx context.Context, waiting float64) {
	free := cap(t.slots) - t.held
	if waiting > float64(max(maxWaiting*runtime.GOMAXPROCS(0), free/waitingShare)) {
		free = max(t.least, free-free/8)
	} else {
		free = min(cap(t.slots), free+max(1, cap(t.slots)/16))
	}
	for ; t.held < cap(t.slots)-free; t.held++ {
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	for ; t.held > cap(t.slots)-free; t.held-- {
		<-t.slots
	}
}
