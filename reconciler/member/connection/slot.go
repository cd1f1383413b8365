package connection

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gitfleet/gitfleet/reconciler/member/memory"
)

// An answerSlot lets an answer that is no longer small be read and decoded. One goroutine uses it.
type answerSlot struct {
	of *quota
	// end ends the answer that is being read. Any goroutine may call it.
	end func()

	leases  []*memory.Lease // one for each size that the answer has reached
	revoked *atomic.Bool    // that of the leases; nil without any
}

type slotKey struct{}

// holdingSlot returns a context with which the slot of an answer is held until release is called,
// instead of until the answer is read.
func holdingSlot(ctx context.Context) (holding context.Context, release func()) {
	s := &answerSlot{}
	return context.WithValue(ctx, slotKey{}, s), s.release
}

// begin prepares the slot for an answer.
func (s *answerSlot) begin(of *quota, end func()) {
	s.release()
	s.of, s.end = of, end
}

// errRevoked is the error of an answer that arrives too slowly for the memory that it takes.
var errRevoked = errors.New("the API server sends a large answer too slowly: the memory for it is needed for other clusters")

// grow waits for what an answer of some cost needs, in bytes, unless it has that already. Up to from it
// needs nothing.
func (s *answerSlot) grow(ctx context.Context, cost, from int64) error {
	for size, most := range []int64{from, largeAnswer} {
		if cost <= most || len(s.leases) > size {
			continue
		}
		if err := s.lease(ctx, memory.Size(size)); err != nil {
			return err
		}
	}
	if s.revoked != nil && s.revoked.Load() {
		s.release()
		return errRevoked
	}
	return nil
}

func (s *answerSlot) lease(ctx context.Context, size memory.Size) error {
	if len(s.leases) == 0 {
		select {
		case s.of.medium <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.revoked = &atomic.Bool{}
	}
	revoked, end := s.revoked, s.end
	lease, err := s.of.memory.Lease(ctx, size, func() {
		revoked.Store(true)
		end()
	})
	s.leases = append(s.leases, lease) // nil with an error
	if err != nil {
		s.release()
	}
	return err
}

// release gives back what the slot holds.
func (s *answerSlot) release() {
	if len(s.leases) == 0 {
		return
	}
	for _, lease := range s.leases {
		lease.Release()
	}
	<-s.of.medium
	s.leases, s.revoked = nil, nil
}

// An EventSlot lets large events of one watch be read and decoded, one at a time. One goroutine uses it.
type EventSlot struct {
	ctx  context.Context
	slot answerSlot
}

// EventSlot returns the slot of a watch. end ends the watch, and any goroutine may call it.
func (c *Conn) EventSlot(ctx context.Context, end func()) *EventSlot {
	return &EventSlot{ctx, answerSlot{of: c.clients().quota, end: end}}
}

// Grow waits, if need be, before the rest of an event is read, of which some bytes were read.
func (e *EventSlot) Grow(bytes int) error { return e.slot.grow(e.ctx, 2*int64(bytes), mediumEvent) }

// Check waits, if need be, before an event is decoded. It returns an error if the event would decode to too
// much.
func (e *EventSlot) Check(line []byte) error {
	values := valueCounter{most: objectValues}
	if than := values.count(line); than != "" {
		return &exceededError{than, true}
	}
	return e.slot.grow(e.ctx, 2*int64(len(line))+valueBytes*int64(values.values), mediumEvent)
}

// Release gives back what the slot holds: an event was decoded, or the watch ends.
func (e *EventSlot) Release() { e.slot.release() }
