package simulation

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// invariantTorn is the invariant of the state directory.
const invariantTorn = "a ledger is read completely or refused, whatever a crash leaves of it"

// A disk is a state directory in a real file, with the effect of the last write.
type disk struct {
	dir           string
	before, after []byte
}

func (d *disk) path() string { return filepath.Join(d.dir, "ledger.db") }

// recordWrite runs a save, and records its effect on the file.
func (d *disk) recordWrite(save func() error) (err error) {
	if d == nil {
		return save()
	}
	if d.before, err = os.ReadFile(d.path()); err != nil {
		return err
	}
	if err := save(); err != nil {
		return err
	}
	d.after, err = os.ReadFile(d.path())
	return err
}

const page = 4096

// tornImage returns the file as a crash during a write may leave it: some data pages, in any
// order, and then the meta page. A disk that does not keep that order may leave anything, which
// is not fair.
func (d *disk) tornImage(pick func(n int) int) (image []byte, fair bool) {
	image = bytes.Clone(d.before)
	if len(d.after) > len(image) {
		image = append(image, make([]byte, len(d.after)-len(image))...)
	}
	var data, meta []int
	for at := 0; at+page <= len(d.after); at += page {
		if !bytes.Equal(image[at:at+page], d.after[at:at+page]) {
			if at < 2*page {
				meta = append(meta, at)
			} else {
				data = append(data, at)
			}
		}
	}
	write := func(at, size int) { copy(image[at:at+size], d.after[at:]) }
	complete := true
	for _, at := range data {
		switch pick(3) {
		case 0:
			complete = false
		case 1:
			write(at, 512*pick(page/512))
			complete = false
		default:
			write(at, page)
		}
	}
	fair = true
	for _, at := range meta {
		switch pick(4) {
		case 0:
			write(at, page)
			fair = complete
		case 1:
			write(at, 16+pick(48))
		}
	}
	if pick(12) == 0 {
		image, fair = image[:pick(len(image))], false
	}
	return image, fair
}

// simulateTornWrite leaves the file as a crash during the last save may leave it, and replaces
// it as a user does if it is refused.
func (w *world) simulateTornWrite() {
	d := w.state.disk
	image, fair := d.tornImage(w.hosts[keys(w.hosts)[0]].random.IntN)
	if err := w.state.Close(); err != nil {
		w.t.Error(err)
	}
	if err := os.WriteFile(d.path(), image, 0o600); err != nil {
		w.t.Error(err)
	}
	store, l, err := d.open()
	switch found := newModel().after; {
	case err != nil && fair:
		w.violate(invariantTorn, "a crash leaves a file that is refused: %v", err)
	case err != nil:
		w.logf("the ledger is refused, and moved away: %v", err)
		w.loseLedger()
	case sameEntries(found(l), w.previous):
		w.state.Store, w.saved, w.savedObservations = store, w.previous, w.previousObservations
		w.logf("the last save is undone")
	case sameEntries(found(l), w.saved):
		w.state.Store = store
	case !fair && slices.ContainsFunc(w.older, func(b *model) bool { return sameEntries(found(l), b) }):
		// The valid meta page names a data page that still holds what an earlier save wrote
		// there: complete, and without a sign of its age.
		w.logf("the ledger is of an earlier time, and moved away")
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
		w.loseLedger()
	default:
		w.violate(invariantTorn, "it was read as a state that was never saved")
	}
}

// open opens the file as a daemon does at its start.
func (d *disk) open() (ledger.Store, *ledger.Ledger, error) {
	store, err := ledger.Open(d.dir)
	if err != nil {
		return nil, nil, err
	}
	l, err := store.Load()
	return store, l, err
}

// loseLedger creates a new state directory.
func (w *world) loseLedger() {
	w.state.lost = true
	w.losses++
	clear(w.saved.requestedSuspensions)
	clear(w.savedObservations.requestedSuspensions)
	w.requests = nil
	if w.replicas != nil {
		clear(w.replicas.secrets.values)
		w.replicas.attempts = nil
		return
	}
	if w.state.disk == nil {
		w.state.Store = ledger.Memory()
		return
	}
	if w.state.Store != nil {
		w.state.Close() // it may be closed already
	}
	os.Remove(w.state.disk.path())
	store, _, err := w.state.disk.open()
	if err != nil {
		w.t.Error(err)
	}
	w.state.Store = store
}

func sameEntries(a, b *model) bool {
	return a.head == b.head && maps.EqualFunc(a.entries, b.entries, func(x, y map[string]*ledger.Entry) bool {
		return maps.EqualFunc(x, y, sameEntry)
	})
}

func sameEntry(a, b *ledger.Entry) bool {
	return a.Binding.Assigned == b.Binding.Assigned && a.Binding.AssignedAt.Equal(b.Binding.AssignedAt) &&
		a.Binding.Unscheduled == b.Binding.Unscheduled && a.Binding.Removing == b.Binding.Removing &&
		a.Binding.Risked == b.Binding.Risked && a.Unusual().Deviation.Equal(b.Unusual().Deviation) && seen(a) == seen(b)
}

func seen(e *ledger.Entry) string {
	if e.Seen == nil {
		return ""
	}
	return e.Seen.Revision.Hash + e.SeenAt().UTC().String()
}
