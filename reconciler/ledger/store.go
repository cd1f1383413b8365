package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Store keeps a ledger across restarts. After Save has returned without error, Load returns
// an equal ledger, even after a crash.
type Store interface {
	// Load returns what was saved; an empty ledger if nothing was.
	Load() (*Ledger, error)
	// Save writes what has changed since the last Save, completely or not at all.
	Save(*Ledger) error
	Close() error
}

// An Archive is a store with export and import.
type Archive interface {
	Store
	// Fleet returns the fleet that Load would return, without loading the rest. It is zero if
	// nothing was ever saved. For a store of a version without fleet IDs, it has only the
	// default name of that version.
	Fleet() (Fleet, error)
	// Export writes everything that was saved, as a readable backup. It may be called
	// concurrently.
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
	records, err := encode(l)
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
	l.saved()
	return nil
}

func (s *memoryStore) Close() error { return nil }

// The keys of the single records: the commit in force, which earlier versions named the head, and
// the fleet.
const headKey, fleetKey = "h", "f"

// Keys of records: a letter for the kind, then names, which have no NUL.
func clusterKey(name string) string          { return "c\x00" + name }
func placementKey(k api.PlacementKey) string { return "p\x00" + k.Namespace + "\x00" + k.Name }
func entryKey(k api.PlacementKey, cluster string) string {
	return "e\x00" + k.Namespace + "\x00" + k.Name + "\x00" + cluster
}
func suspensionKey(s Subject) string {
	return strings.Join([]string{"s", s.Placement.Namespace, s.Placement.Name, s.Object.Group, s.Object.Kind, s.Object.Namespace, s.Object.Name, s.Cluster}, "\x00")
}

// encode returns the dirty records; nil for a deleted one.
func encode(l *Ledger) (map[string][]byte, error) {
	out := make(map[string][]byte, len(l.dirty))
	for key := range l.dirty {
		raw, err := l.record(key)
		if err != nil {
			return nil, fmt.Errorf("encode ledger: %w", err)
		}
		out[key] = raw
	}
	return out, nil
}

// markAll marks all records as unsaved.
func (l *Ledger) markAll() {
	l.markUnsaved(headKey)
	l.markUnsaved(fleetKey)
	for name := range l.clusters {
		l.markUnsaved(clusterKey(name))
	}
	for key, p := range l.placements {
		l.markUnsaved(placementKey(key))
		for cluster := range p.entries {
			l.markUnsaved(entryKey(key, cluster))
		}
	}
	for subject := range l.suspensions {
		l.markUnsaved(suspensionKey(subject))
	}
	for id := range l.declared {
		l.markUnsaved(declaredKey(id))
	}
	for key := range l.eventsByKey {
		l.markUnsaved(key)
	}
}

func (l *Ledger) record(key string) ([]byte, error) {
	parts := strings.Split(key, "\x00")
	switch parts[0] {
	case headKey:
		return json.Marshal(l.inForce)
	case fleetKey:
		return json.Marshal(l.fleet)
	case "c":
		if c := l.clusters[parts[1]]; c != nil {
			return json.Marshal(c)
		}
	case "p":
		if p := l.placements[api.PlacementKey{Namespace: parts[1], Name: parts[2]}]; p != nil {
			return json.Marshal(p)
		}
	case "e":
		if p := l.placements[api.PlacementKey{Namespace: parts[1], Name: parts[2]}]; p != nil && p.entries[parts[3]] != nil {
			return json.Marshal(p.entries[parts[3]])
		}
	case "o":
		if d, ok := l.declared[declaredOf(parts)]; ok {
			return json.Marshal(d)
		}
	case "v":
		if e, ok := l.eventsByKey[key]; ok {
			return json.Marshal(e)
		}
	case "s":
		if s, ok := l.suspensions[subjectOf(parts)]; ok {
			return json.Marshal(s)
		}
	}
	return nil, nil
}

// subjectOf parses the key of a suspension.
func subjectOf(parts []string) Subject {
	return Subject{
		Placement: api.PlacementKey{Namespace: parts[1], Name: parts[2]},
		Object:    api.ID{Group: parts[3], Kind: parts[4], Namespace: parts[5], Name: parts[6]},
		Cluster:   parts[7],
	}
}

func decode(records map[string][]byte) (*Ledger, error) {
	l := New()
	// in descending order, so that "p" comes before "e": placements are decoded before their
	// entries
	keys := slices.Sorted(maps.Keys(records))
	slices.Reverse(keys)
	for _, key := range keys {
		if err := l.restore(key, records[key]); err != nil {
			return nil, fmt.Errorf("read ledger record %q: %w", strings.ReplaceAll(key, "\x00", "/"), err)
		}
	}
	l.orderEvents()
	return l, nil
}

func (l *Ledger) restore(key string, raw []byte) error {
	parts := strings.Split(key, "\x00")
	switch {
	case key == headKey:
		return json.Unmarshal(raw, &l.inForce)
	case key == fleetKey:
		return json.Unmarshal(raw, &l.fleet)
	case parts[0] == "c" && len(parts) == 2:
		l.clusters[parts[1]] = &Cluster{}
		return json.Unmarshal(raw, l.clusters[parts[1]])
	case parts[0] == "p" && len(parts) == 3:
		p := &Placement{entries: map[string]*Entry{}}
		l.placements[api.PlacementKey{Namespace: parts[1], Name: parts[2]}] = p
		return json.Unmarshal(raw, p)
	case parts[0] == "e" && len(parts) == 4:
		p := l.placements[api.PlacementKey{Namespace: parts[1], Name: parts[2]}]
		if p == nil {
			return errors.New("its placement is missing")
		}
		p.entries[parts[3]] = &Entry{}
		return json.Unmarshal(raw, p.entries[parts[3]])
	case parts[0] == "s" && len(parts) == 8:
		return readInto(l.suspensions, subjectOf(parts), raw)
	case parts[0] == "o" && len(parts) == 5:
		return readInto(l.declared, declaredOf(parts), raw)
	case parts[0] == "v" && len(parts) == 2:
		return readInto(l.eventsByKey, key, raw)
	}
	return errors.New("not a record of this version")
}

// readInto decodes one record into a map.
func readInto[K comparable, V any](all map[K]V, key K, raw []byte) error {
	var v V
	err := json.Unmarshal(raw, &v)
	if err == nil {
		all[key] = v
	}
	return err
}
