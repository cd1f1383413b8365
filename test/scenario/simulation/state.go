package simulation

import (
	"errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A state is the state directory.
type state struct {
	ledger.Store
	// lost says that the state is empty although it was not, full that writes fail.
	lost, full bool
	// disk is a real file; nil for a state in memory.
	disk *disk
}

var errFull, errKilled = errors.New("no space left on device"), errors.New("killed")

// A store is the state directory as one daemon uses it. The daemon may be killed before and
// after each write.
type store struct {
	w *world
	d *daemon
}

// Load returns what was saved.
func (s *store) Load() (*ledger.Ledger, error) {
	load := s.w.state.Store.Load
	if s.d.shared != nil {
		load = s.d.shared.Load
	}
	l, err := load()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.believe()
	s.w.mutant.loads(l)
	return l, err
}

// Save writes what changed.
func (s *store) Save(l *ledger.Ledger) error {
	w := s.w
	s.d.hold()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.d.former {
		return s.d.save(l)
	}
	if s.d.burns() {
		return errKilled
	}
	w.mutant.saves(w.source.commits[l.Head()], l)
	w.checkDecided(l)
	if w.state.full {
		return errFull
	}
	save := w.state.Save
	if s.d.shared != nil {
		save = s.d.save
	}
	if err := w.state.disk.writing(func() error { return save(l) }); err != nil {
		return err
	}
	if s.d.former {
		return nil // it was stopped once the ledger was saved, and another replica has read it
	}
	if w.state.disk != nil {
		w.older = append(w.older, w.books)
	}
	w.unsaved, w.unsavedMemory = w.books, w.saved
	w.state.lost = false
	w.books, w.saved = w.decided, w.decided.memory.clone()
	s.d.torn = s.d.burns() && w.state.disk != nil
	return nil
}

// Close is for the one who opened it.
func (s *store) Close() error { return nil }
