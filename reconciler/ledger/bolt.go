package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/gitfleet/gitfleet/gitsource/filelock"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var bucket, sumBucket, schemaKey, sumKey = []byte("ledger"), []byte("sums"), []byte("schema"), []byte("sum")

// A boltStore stores each record under its own key, so that a save writes only what has
// changed. It also stores a checksum of all records, since the library verifies only its own
// structures, and not all can be rebuilt from Git and the members: suspensions, frozen content, stopped
// rollouts and approvals are nowhere else. The checksum has a bucket of its own. It is small enough to be stored inline
// in the root page; among the records, every save would rewrite another path of pages.
type boltStore struct {
	path string
	db   *bbolt.DB
	file *os.File // that of db
}

// Open opens the ledger in a directory, and creates it if necessary. Only one process can have
// it open; another gets an error after a second. A damaged file is refused and not changed.
func Open(dir string) (Archive, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	s := &boltStore{path: filepath.Join(dir, "ledger.db")}
	if err := s.guard("open", s.open); err != nil {
		return nil, err
	}
	return s, nil
}

// ErrInUse says that another process has the ledger open.
var ErrInUse = filelock.ErrInUse

// guard adds what is done to errors. It converts panics and memory faults of the library, which
// occur on a damaged file, into errors. The library must not be used afterwards, not even to
// close the file, which guard does to release its lock.
func (s *boltStore) guard(what string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			filelock.Release(s.file)
			err = faultOf(s.path, fault)
		}
		if err != nil {
			err = fmt.Errorf("%s ledger %s: %w", what, s.path, err)
		}
	}()
	return do()
}

func (s *boltStore) open() error {
	if err := s.connect(time.Second, false); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// noFile returns an error if something other than a file is where the ledger belongs.
func noFile(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("it is a directory and not a file, as when a volume is mounted there: remove it, and mount the volume at stateDir; the ledger is rebuilt from Git and the members")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file: remove it; the ledger is rebuilt from Git and the members")
	}
	return nil
}

// connect opens the file, and waits for its lock.
func (s *boltStore) connect(timeout time.Duration, readOnly bool) (err error) {
	if info, err := os.Stat(s.path); err == nil {
		if err := noFile(info); err != nil {
			return err
		}
	}
	s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{Timeout: timeout, ReadOnly: readOnly, OpenFile: func(name string, flag int, mode fs.FileMode) (f *os.File, err error) {
		f, err = os.OpenFile(name, flag, mode)
		s.file = f
		return f, err
	}})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return ErrInUse
	case ofFileSystem(err):
		return err
	}
	return faultOf(s.path, err)
}

// prepare checks the file before anything is read or written, and fills a new one.
func (s *boltStore) prepare() error {
	isNew, err := s.checkFile()
	if err != nil || !isNew {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return fill(tx, nil) })
}

// checkFile returns whether the file has no ledger yet.
func (s *boltStore) checkFile() (isNew bool, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		switch opened, err := s.file.Stat(); {
		case err != nil:
			return err
		case !os.SameFile(opened, info):
			return ErrInUse // whoever had the lock before has moved the file aside
		case info.Size() < tx.Size():
			return damaged("it ends after %d of %d bytes", info.Size(), tx.Size())
		}
		b := tx.Bucket(bucket)
		if isNew = b == nil; isNew {
			return nil
		}
		var have int
		if err := json.Unmarshal(b.Get(schemaKey), &have); err != nil {
			return damaged("its schema version cannot be read")
		}
		return checkSchema(have)
	})
	return isNew, err
}

// fill creates the buckets.
func fill(tx *bbolt.Tx, records map[string][]byte) error {
	b, err := tx.CreateBucket(bucket)
	if err != nil {
		return err
	}
	return errors.Join(b.Put(schemaKey, fmt.Append(nil, schema)), setSum(tx, checksum{}), write(tx, records))
}

// sumIn returns the recorded checksum. In a file that was last written by an earlier version it is among the records.
func sumIn(tx *bbolt.Tx) checksum {
	if sums := tx.Bucket(sumBucket); sums != nil {
		return sumOf(sums.Get(sumKey))
	}
	return sumOf(tx.Bucket(bucket).Get(sumKey))
}

// setSum records the checksum.
func setSum(tx *bbolt.Tx, sum checksum) error {
	sums, err := tx.CreateBucketIfNotExists(sumBucket)
	if err != nil {
		return err
	}
	return errors.Join(sums.Put(sumKey, sum.bytes()), tx.Bucket(bucket).Delete(sumKey))
}

func (s *boltStore) Load() (l *Ledger, err error) {
	err = s.guard("read", func() (err error) {
		l, err = s.load()
		return err
	})
	return l, err
}

func (s *boltStore) load() (*Ledger, error) {
	records, err := s.read()
	if err != nil {
		return nil, err
	}
	l, err := decode(records)
	switch {
	case ofAnotherVersion(err):
		return nil, err
	case err != nil:
		return nil, damaged("%v", err)
	}
	s.releasePages()
	return l, nil
}

func (s *boltStore) Fleet() (f protocol.Fleet, err error) {
	err = s.guard("read", func() error {
		records, err := s.read()
		if err != nil {
			return err
		}
		if f, err = fleetOf(records); err != nil {
			return damaged("%v", err)
		}
		return nil
	})
	return f, err
}

// fleetOf returns the fleet of the records; zero if they have none.
func fleetOf(records map[string][]byte) (f protocol.Fleet, err error) {
	if raw := records[fleetKey]; raw != nil {
		err = json.Unmarshal(raw, &f)
	}
	return f, err
}

// read returns all records. Keys that are not in order are an error: the pages of a damaged file
// may form a circle, which the library would follow for ever.
func (s *boltStore) read() (map[string][]byte, error) {
	records := map[string][]byte{}
	var want, got checksum
	err := s.db.View(func(tx *bbolt.Tx) error {
		want = sumIn(tx)
		var last []byte
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			if last != nil && bytes.Compare(k, last) <= 0 {
				return damaged("its records are not in order")
			}
			last = slices.Clone(k)
			if string(k) != string(schemaKey) && string(k) != string(sumKey) {
				records[string(k)] = slices.Clone(v)
				got.add(k, v)
			}
			return nil
		})
	})
	if err == nil && got != want {
		err = damaged("its %d records are not the %d that were written", got.records, want.records)
	}
	return records, err
}

func (s *boltStore) Save(l *Ledger) error {
	if !l.Unsaved() {
		return nil
	}
	keys := l.batch(maxRecords)
	records, err := encode(l, keys)
	if err != nil {
		return err
	}
	if err := s.db.Update(func(tx *bbolt.Tx) error { return write(tx, records) }); err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	l.saved(keys)
	s.releasePages()
	return nil
}

// releasePages makes the kernel drop the pages of the file from the memory of the process, where bbolt otherwise keeps all that it has
// read. They come from the page cache when they are read again.
func (s *boltStore) releasePages() {
	_ = s.db.View(func(tx *bbolt.Tx) error {
		releasePages(s.db.Info().Data, uintptr(tx.Size()))
		return nil
	})
}

// write writes records, and deletes those without a value.
func write(tx *bbolt.Tx, records map[string][]byte) error {
	b, total := tx.Bucket(bucket), sumIn(tx)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		key, value := []byte(name), records[name]
		if old := b.Get(key); old != nil {
			total.remove(key, old)
		}
		if value == nil {
			if err := b.Delete(key); err != nil {
				return err
			}
			continue
		}
		total.add(key, value)
		if err := b.Put(key, value); err != nil {
			return err
		}
	}
	return setSum(tx, total)
}

func (s *boltStore) Close() error { return s.db.Close() }

func (s *boltStore) Export(w io.Writer) error {
	return s.guard("export", func() error {
		records, err := s.read()
		if err != nil {
			return err
		}
		return export(w, records)
	})
}

const beforeImport = ".before-import"

// Import implements Archive. If there was data, a copy is kept.
func (s *boltStore) Import(r io.Reader, replace bool) error {
	records, err := parseBackup(r)
	if err != nil {
		return err
	}
	old, err := s.read()
	switch {
	case err != nil:
		return fmt.Errorf("read ledger %s: %w", s.path, err)
	case len(old) > 0 && !replace:
		return fmt.Errorf("%s is not empty: it has %d records; with --force they are replaced, and kept in %s", s.path, len(old), s.path+beforeImport)
	case len(old) > 0:
		if err := s.copyTo(s.path + beforeImport); err != nil {
			return err
		}
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket(bucket); err != nil {
			return err
		}
		return fill(tx, records)
	})
	if err != nil {
		return fmt.Errorf("import ledger: %w", err)
	}
	return nil
}

// copyTo copies the file, replacing an earlier copy.
func (s *boltStore) copyTo(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = s.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path, 0o600) })
	}
	if err != nil {
		return fmt.Errorf("keep a copy of the ledger: %w", err)
	}
	return nil
}

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
