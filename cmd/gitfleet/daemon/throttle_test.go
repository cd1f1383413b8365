package daemon

import (
	"context"
	"runtime"
	"testing"
)

// While goroutines wait for a processor, requests get fewer slots, but not fewer than some. They get all of them back.
func TestThrottleLeavesSlots(t *testing.T) {
	slots := make(chan struct{}, 128)
	throttle := &throttle{slots: slots, least: 16}
	few, many := 0.0, float64(max(cap(slots), maxWaiting*runtime.GOMAXPROCS(0))+1)
	for _, step := range []struct {
		waiting float64
		free    int
	}{{few, 128}, {many, 112}, {many, 98}, {few, 106}, {many, 93}} {
		throttle.adjust(t.Context(), step.waiting)
		if free := cap(slots) - len(slots); free != step.free {
			t.Fatalf("%d slots are free, want %d", free, step.free)
		}
	}
	for range 20 {
		throttle.adjust(t.Context(), many)
	}
	if free := cap(slots) - len(slots); free != 16 {
		t.Errorf("%d slots are left, want 16", free)
	}
	for range 14 {
		throttle.adjust(t.Context(), few)
	}
	if len(slots) != 0 {
		t.Errorf("%d slots are not given back", len(slots))
	}
}

// If the servers are slow, most requests wait for them and only some for a processor: then no slots are taken.
func TestThrottleLeavesRequestsToSlowServers(t *testing.T) {
	slots := make(chan struct{}, 100*runtime.GOMAXPROCS(0))
	throttle := newThrottle(slots)
	throttle.adjust(t.Context(), float64(cap(slots)/waitingShare))
	if throttle.held != 0 {
		t.Errorf("it holds %d slots", throttle.held)
	}
}

// A throttle takes the slots of requests in flight once they have ended, and none of a small limit.
func TestThrottleWaitsForRequests(t *testing.T) {
	slots := make(chan struct{}, 8)
	for range cap(slots) {
		slots <- struct{}{}
	}
	throttle, many := &throttle{slots: slots, least: 7}, float64(maxWaiting*runtime.GOMAXPROCS(0)+1)
	ended, end := context.WithCancel(t.Context())
	end()
	throttle.adjust(ended, many)
	if throttle.held != 0 {
		t.Errorf("it holds %d slots of requests in flight", throttle.held)
	}
	<-slots
	throttle.adjust(t.Context(), many)
	if throttle.held != 1 || len(slots) != 8 {
		t.Errorf("it holds %d slots, and %d are used, want 1 and 8", throttle.held, len(slots))
	}
	if small := newThrottle(make(chan struct{}, 1)); small.least != 1 {
		t.Errorf("of a limit of one request %d are left", small.least)
	}
}
