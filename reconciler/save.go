package reconciler

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// saveDelay is how long observations may wait to be saved: members report their progress in quick succession, and each
// save waits for the disk.
const saveDelay = time.Second

// A saver saves the ledger.
type saver struct {
	cfg *Config
	// due is the time at which observations are saved; zero if there are none to save.
	due time.Time
	// took is how long all saves have taken.
	took time.Duration
}

// saveAll saves everything, with several saves if it is very much.
func (s *saver) saveAll(l *ledger.Ledger) {
	for s.save(l) && l.Unsaved() {
	}
}

// save saves the ledger, and reports whether it is saved. If there is very much to save, entries that were added are left to the
// next saves.
func (s *saver) save(l *ledger.Ledger) bool {
	faults.At("before save")
	defer faults.At("after save")
	var err error
	start := time.Now()
	s.cfg.Metrics.timed(phaseSave, func() { err = s.cfg.Store.Save(l) })
	s.took += time.Since(start)
	if err != nil {
		s.cfg.Log.Error("ledger not saved; works are sent to members only after it is", "err", err)
		return false
	}
	s.due = time.Time{}
	return true
}

// delay makes observations be saved after saveDelay, unless they are saved earlier.
func (s *saver) delay(l *ledger.Ledger, now time.Time) {
	if l.Unsaved() && s.due.IsZero() {
		s.due = now.Add(saveDelay)
	}
}

// saveObservations saves observations that have waited for saveDelay.
func (s *saver) saveObservations(l *ledger.Ledger, now time.Time) {
	if !s.due.IsZero() && !now.Before(s.due) && (!s.save(l) || l.Unsaved()) {
		s.due = now.Add(saveDelay)
	}
}

// A verifier is a store whose data others may delete.
type verifier interface {
	// Verify returns what is missing of the saved ledger. l is then saved completely.
	Verify(l *ledger.Ledger) (missing []string)
}

// verify saves the ledger again if some of its data was deleted.
func (s *saver) verify(l *ledger.Ledger) {
	store, ok := s.cfg.Store.(verifier)
	if !ok {
		return
	}
	if missing := store.Verify(l); len(missing) > 0 {
		s.cfg.Log.Warn("parts of the saved ledger were deleted; saving it again", "missing", missing)
	}
}
