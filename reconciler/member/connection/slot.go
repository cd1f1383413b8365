package connection

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gitfleet/gitfleet/reconciler/member/memory"
)

const (
	// maxInFlight is the maximum number of requests to a member that wait for a response, except
	// watches.
	maxInFlight = 100
	// maxMedium is the maximum number of answers of a member that are no longer small, and are read and
	// decoded at the same time.
	maxMedium = 2
	// largeAnswer is the cost from which an answer counts as large, in bytes. The cost is twice the text, since buffers grow,
	// and valueBytes for each of its values.
	largeAnswer = memory.MediumBytes
	valueBytes  = 128
)

// A quota is what the requests to one member share, and its share of the memory for all members.
type quota struct {
	inFlight, medium chan struct{}
	memory           *memory.Share
}

func newQuota(share *memory.Share) *quota {
	return &quota{make(chan struct{}, maxInFlight), make(chan struct{}, maxMedium), share}
}

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
