package simulation

import (
	"errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A state is the state directory.
type state struct {
	ledger.Store
	// lost says that the state was lost, full that writes fail.
	lost, full bool
	// disk is a real file; nil for a state in memory.
	disk *disk
}

var errDiskFull, errKilled = errors.New("no space left on device"), errors.New("killed")

// A store is the store of one daemon. The daemon may be killed before and after each write.
type store struct {
	w *world
	d *daemon
}

// Load implements ledger.Store.
func (s *store) Load() (*ledger.Ledger, error) {
	load := s.w.state.Store.Load
	if s.d.shared != nil {
		load = s.d.shared.Load
	}
	l, err := load()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.rebaseAvailability()
	if err == nil && s.w.savedModelObservations().uncertain {
		s.w.adoptSuspensions(l)
	}
	s.w.mutant.loads(l)
	return l, err
}

// Save implements ledger.Store.
func (s *store) Save(l *ledger.Ledger) error {
	w := s.w
	s.d.waitWhileStopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.d.former {
		return s.d.save(l)
	}
	if s.d.countWrite() {
		return errKilled
	}
	w.mutant.saves(w.source.commits[l.InForce()], l)
	w.checkDecided(l)
	if w.state.full {
		return errDiskFull
	}
	save := w.state.Save
	if s.d.shared != nil {
		save = s.d.save
	}
	if err := w.state.disk.recordWrite(func() error { return save(l) }); err != nil {
		return err
	}
	if s.d.former {
		return nil // it was stopped after the ledger was saved, and another replica has loaded it
	}
	if w.state.disk != nil {
		w.older = append(w.older, w.saved)
	}
	w.previous, w.previousObservations = w.saved, w.savedObservations
	w.state.lost = false
	w.saved, w.savedObservations = w.decided, w.decided.observations.clone()
	s.d.torn = s.d.countWrite() && w.state.disk != nil
	return nil
}

// Close does nothing; the world closes its store.
func (s *store) Close() error { return nil }
