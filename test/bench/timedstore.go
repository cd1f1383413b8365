package main

import (
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A timedStore is a ledger's store that measures saves: works are sent to members only after
// the ledger is on disk.
type timedStore struct {
	ledger.Store

	mu    sync.Mutex
	saves int
	took  time.Duration
}

// Save saves the ledger and records how long it took.
func (s *timedStore) Save(l *ledger.Ledger) error {
	began := time.Now()
	err := s.Store.Save(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves++
	s.took += time.Since(began)
	return err
}

// reset returns the number of saves since the last reset and their total time.
func (s *timedStore) reset() (saves int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saves, took = s.saves, s.took
	s.saves, s.took = 0, 0
	return saves, took
}
