package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

var bucket, schemaKey, sumKey = []byte("ledger"), []byte("schema"), []byte("sum")

// Open opens the ledger in a directory, and creates it if necessary. Only one process can have
// it open; another gets an error after a second. A damaged file is refused and not changed.
func Open(dir string) (Archive, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	s := &boltStore{path: filepath.Join(dir, "ledger.db")}
	if err := recoverPanic(s.open); err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", s.path, err)
	}
	return s, nil
}

// A boltStore stores each record under its own key, so that a save writes only what has
// changed. It also stores a checksum of all records, since the library verifies only its own
// structures.
type boltStore struct {
	path string
	db   *bbolt.DB
}

// ErrInUse says that another process has the ledger open.
var ErrInUse = errors.New("another gitfleet uses this state directory")

// InUse reports whether another process has the ledger in a directory open. It writes
// nothing; a directory without a ledger is not in use.
func InUse(dir string) (bool, error) {
	db, err := bbolt.Open(filepath.Join(dir, "ledger.db"), 0o600, &bbolt.Options{Timeout: 100 * time.Millisecond, ReadOnly: true})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("open ledger: %w", err)
	}
	return false, db.Close()
}

// A DamagedError says that the file of a ledger is damaged.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string {
	return "the file is damaged (" + e.Why + "): move it away, and the ledger is rebuilt from what the members hold"
}

func damaged(format string, args ...any) error { return &DamagedError{fmt.Sprintf(format, args...)} }

// recoverPanic converts panics and memory faults of the library, which occur on a damaged file,
// into errors. The library must not be used afterwards, not even to close the file.
func recoverPanic(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = damaged("%v", fault)
		}
	}()
	return do()
}

func (s *boltStore) open() error {
	db, err := bbolt.Open(s.path, 0o600, &bbolt.Options{Timeout: time.Second})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, os.ErrPermission):
		return err
	case err != nil:
		return damaged("%v", err)
	}
	s.db = db
	if err := s.check(); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// check checks the file before anything is read or written.
func (s *boltStore) check() error {
	fresh, old := false, schema
	err := s.db.View(func(tx *bbolt.Tx) error {
		if info, err := os.Stat(s.path); err != nil {
			return err
		} else if info.Size() < tx.Size() {
			return damaged("it ends after %d of %d bytes", info.Size(), tx.Size())
		}
		b := tx.Bucket(bucket)
		if b == nil {
			fresh = true
			return nil
		}
		var have int
		if err := json.Unmarshal(b.Get(schemaKey), &have); err != nil {
			return damaged("its schema version cannot be read")
		}
		if have > schema {
			return newerError(have, ", or start with an empty state directory")
		}
		old = have
		return nil
	})
	if err != nil {
		return err
	}
	if !fresh {
		return s.migrate(old)
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return fill(tx, nil) })
}

func (s *boltStore) Load() (*Ledger, error) {
	var l *Ledger
	err := recoverPanic(func() error {
		records, err := s.read()
		if err != nil {
			return err
		}
		l, err = decode(records)
		if err != nil {
			return damaged("%v", err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", s.path, err)
	}
	return l, nil
}

// defaultName was the name of every fleet whose configuration did not set one.
const defaultName = "default"

func (s *boltStore) Fleet() (Fleet, error) {
	var f Fleet
	err := recoverPanic(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			if raw := b.Get([]byte(fleetKey)); raw != nil {
				return json.Unmarshal(raw, &f)
			}
			return forEach(b, func(_, _ []byte) { f.Name = defaultName })
		})
	})
	if err != nil {
		return f, fmt.Errorf("read ledger %s: %w", s.path, err)
	}
	return f, nil
}

func (s *boltStore) read() (map[string][]byte, error) {
	records := map[string][]byte{}
	var want, got checksum
	err := s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		want = sumOf(b.Get(sumKey))
		return forEach(b, func(k, v []byte) {
			records[string(k)] = slices.Clone(v)
			got.add(k, v)
		})
	})
	if err == nil && got != want {
		err = damaged("its %d records are not the %d that were written", got.records, want.records)
	}
	return records, err
}

// forEach calls do for each record of the ledger. Keys that are not in order are an error: the
// pages of a damaged file may form a circle, which the library would follow for ever.
func forEach(b *bbolt.Bucket, do func(k, v []byte)) error {
	var last []byte
	return b.ForEach(func(k, v []byte) error {
		if last != nil && bytes.Compare(k, last) <= 0 {
			return damaged("its records are not in order")
		}
		last = slices.Clone(k)
		if string(k) != string(schemaKey) && string(k) != string(sumKey) {
			do(k, v)
		}
		return nil
	})
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
		total := sumOf(b.Get(sumKey))
		for _, key := range slices.Sorted(maps.Keys(records)) {
			if err := write(b, []byte(key), records[key], &total); err != nil {
				return err
			}
		}
		return b.Put(sumKey, total.bytes())
	})
	if err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	l.saved()
	return nil
}

func write(b *bbolt.Bucket, key, value []byte, total *checksum) error {
	if old := b.Get(key); old != nil {
		total.remove(key, old)
	}
	if value == nil {
		return b.Delete(key)
	}
	total.add(key, value)
	return b.Put(key, value)
}

func (s *boltStore) Close() error { return s.db.Close() }

// A checksum is a checksum of a set of records. It does not depend on their order, and is
// updated incrementally.
type checksum struct{ records, total uint64 }

var polynomial = crc64.MakeTable(crc64.ECMA)

func digest(key, value []byte) uint64 {
	return crc64.Update(crc64.Update(crc64.Checksum(key, polynomial), polynomial, []byte{0xff}), polynomial, value)
}

func (s *checksum) add(key, value []byte) {
	s.records++
	s.total += digest(key, value)
}

func (s *checksum) remove(key, value []byte) {
	s.records--
	s.total -= digest(key, value)
}

func (s checksum) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.records), s.total)
}

func sumOf(raw []byte) checksum {
	if len(raw) != 16 {
		return checksum{records: ^uint64(0)} // matches no set of records
	}
	return checksum{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:])}
}
