package ledger

import (
	"io"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A Store keeps a ledger across restarts. After Save has returned without error, Load returns
// an equal ledger, even after a crash.
type Store interface {
	// Load returns what was saved; an empty ledger if nothing was.
	Load() (*Ledger, error)
	// Save writes what has changed since the last Save, completely or not at all. If very much has changed, entries that were
	// added are left to the next calls, and so are observations.
	Save(*Ledger) error
	Close() error
}

// An Archive is a store with export and import.
type Archive interface {
	Store
	// Fleet returns the fleet that Load would return; zero if nothing was ever saved.
	Fleet() (protocol.Fleet, error)
	// Export writes everything that was saved, in a consistent state, as a readable backup. It
	// may be called concurrently.
	Export(io.Writer) error
	// Import replaces all records by a backup, or changes nothing if it fails. Existing data is
	// an error unless replace is set.
	Import(r io.Reader, replace bool) error
}

// Memory returns a store in memory, for tests and offline plans.
func Memory() Store { return &memoryStore{records: map[string][]byte{}} }

type memoryStore struct{ records map[string][]byte }

func (s *memoryStore) Load() (*Ledger, error) { return decode(s.records) }

func (s *memoryStore) Save(l *Ledger) error {
	records, err := encode(l, l.unsavedKeys())
	if err != nil {
		return err
	}
	for key, value := range records {
		if value == nil {
			delete(s.records, key)
		} else {
			s.records[key] = value
		}
	}
	l.allSaved()
	return nil
}

func (s *memoryStore) Close() error { return nil }
