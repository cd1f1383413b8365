package daemon

import (
	"context"
	"testing"
)

// While processors are busy, requests get fewer slots, but not fewer than some. They get all of them back.
func TestThrottleLeavesSlots(t *testing.T) {
	slots := make(chan struct{}, 128)
	throttle := &throttle{slots: slots, least: 16}
	for _, step := range []struct {
		busy bool
		free int
	}{{false, 128}, {true, 96}, {true, 72}, {false, 80}, {true, 60}, {true, 45}, {true, 34}, {true, 26}, {true, 20}, {true, 16}, {true, 16}, {false, 24}} {
		throttle.adjust(t.Context(), step.busy)
		if free := cap(slots) - len(slots); free != step.free {
			t.Fatalf("%d slots are free, want %d", free, step.free)
		}
	}
	for range 13 {
		throttle.adjust(t.Context(), false)
	}
	if len(slots) != 0 {
		t.Errorf("%d slots are not given back", len(slots))
	}
}

// A throttle takes the slots of requests in flight once they have ended, and none of a small limit.
func TestThrottleWaitsForRequests(t *testing.T) {
	slots := make(chan struct{}, 4)
	for range cap(slots) {
		slots <- struct{}{}
	}
	throttle := &throttle{slots: slots, least: 3}
	ended, end := context.WithCancel(t.Context())
	end()
	throttle.adjust(ended, true)
	if throttle.held != 0 {
		t.Errorf("it holds %d slots of requests in flight", throttle.held)
	}
	<-slots
	throttle.adjust(t.Context(), true)
	if throttle.held != 1 || len(slots) != 4 {
		t.Errorf("it holds %d slots, and %d are used, want 1 and 4", throttle.held, len(slots))
	}
	if small := newThrottle(make(chan struct{}, 1)); small.least != 1 {
		t.Errorf("of a limit of one request %d are left", small.least)
	}
}
