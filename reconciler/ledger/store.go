package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gitfleet/gitfleet/placement/api"
)

// schema is the version of what is stored. A newer one is refused.
const schema = 1

// A Store keeps a ledger over a restart. After Save returns without error, a
// Load gives an equal ledger, whatever happens to the process.
type Store interface {
	// Load returns what was saved; an empty ledger if nothing was.
	Load() (*Ledger, error)
	// Save writes what changed since the last Save, all or nothing.
	Save(*Ledger) error
	Close() error
}

var bucket, schemaKey = []byte("ledger"), []byte("schema")

// Open opens the ledger in a directory and creates it if it is not there. Only
// one process can have it open; a second one gets an error after a second.
func Open(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	path := filepath.Join(dir, "ledger.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if errors.Is(err, bbolt.ErrTimeout) {
		return nil, fmt.Errorf("open ledger %s: another gitfleet uses this state directory", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w; move the file away to rebuild it from the members", path, err)
	}
	s := &boltStore{db: db}
	if err := s.checkSchema(); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), db.Close())
	}
	return s, nil
}

type boltStore struct{ db *bbolt.DB }

func (s *boltStore) checkSchema() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		raw := b.Get(schemaKey)
		if raw == nil {
			return b.Put(schemaKey, []byte(fmt.Sprint(schema)))
		}
		var have int
		if err := json.Unmarshal(raw, &have); err != nil {
			return fmt.Errorf("read its schema version: %w", err)
		}
		if have > schema {
			return fmt.Errorf("it was written by a newer gitfleet (schema %d, this one knows %d): run that version, or start with an empty state directory", have, schema)
		}
		return nil
	})
}

func (s *boltStore) Load() (*Ledger, error) {
	records := map[string][]byte{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			if string(k) != string(schemaKey) {
				records[string(k)] = slices.Clone(v)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return decode(records)
}

func (s *boltStore) Save(l *Ledger) error {
	if len(l.dirty) == 0 {
		return nil
	}
	records, err := encode(l)
	if err != nil {
		return err
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		for _, key := range slices.Sorted(maps.Keys(records)) {
			if err := write(b, []byte(key), records[key]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	clear(l.dirty)
	return nil
}

func write(b *bbolt.Bucket, key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, value)
}

func (s *boltStore) Close() error { return s.db.Close() }

// Memory returns a store that lives as long as the process, for tests and for
// plans made offline.
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
	clear(l.dirty)
	return nil
}

func (s *memoryStore) Close() error { return nil }

const headKey = "h"

// Keys of records: a letter for what it is, then names that cannot hold a NUL.
func clusterKey(name string) string          { return "c\x00" + name }
func placementKey(k api.PlacementKey) string { return "p\x00" + k.Namespace + "\x00" + k.Name }
func entryKey(k api.PlacementKey, cluster string) string {
	return "e\x00" + k.Namespace + "\x00" + k.Name + "\x00" + cluster
}

// encode returns the dirty records; nil for one that is to be deleted.
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

func (l *Ledger) record(key string) ([]byte, error) {
	parts := strings.Split(key, "\x00")
	switch parts[0] {
	case headKey:
		return json.Marshal(l.head)
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
	}
	return nil, nil
}

func decode(records map[string][]byte) (*Ledger, error) {
	l := New()
	// Backwards, "p" comes before "e": placements are made before their entries.
	keys := slices.Sorted(maps.Keys(records))
	slices.Reverse(keys)
	for _, key := range keys {
		if err := l.restore(key, records[key]); err != nil {
			return nil, fmt.Errorf("read ledger record %q: %w", strings.ReplaceAll(key, "\x00", "/"), err)
		}
	}
	return l, nil
}

func (l *Ledger) restore(key string, raw []byte) error {
	parts := strings.Split(key, "\x00")
	switch {
	case key == headKey:
		return json.Unmarshal(raw, &l.head)
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
	}
	return errors.New("not a record of this version")
}
