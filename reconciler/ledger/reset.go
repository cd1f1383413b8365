package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/gitsource/filelock"
	"github.com/gitfleet/gitfleet/reconciler/ledger/segment"
)

// ErrNotDamaged says that a ledger was not reset since it can be read.
var ErrNotDamaged = errors.New("the ledger is not damaged: with --force it is moved aside nevertheless")

// ErrNoLedger says that there is no ledger to reset.
var ErrNoLedger = errors.New("there is no ledger")

// Inspect reads the ledger in a directory, and returns the error that Open or Load would return. It
// writes nothing. A directory without a ledger is no error, and neither is a ledger that another
// process has open, which is not read. The error of a damaged ledger is a DamagedError, and that of
// another version a SchemaError; others are those of the file system.
func Inspect(dir string) (inUse bool, err error) {
	s := &boltStore{path: filepath.Join(dir, "ledger.db")}
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0: // Open fills an empty file
		return false, nil
	case err != nil:
		return false, fmt.Errorf("open ledger: %w", err)
	}
	err = s.guard("open", func() error {
		if err := noFile(info); err != nil {
			return err
		}
		// The rest reads only, and the daemon has to write.
		f, err := os.OpenFile(s.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		f.Close()
		if err := s.connect(100*time.Millisecond, true); err != nil {
			return err
		}
		_, err = s.checkFile()
		if err == nil {
			_, err = s.load()
		}
		return errors.Join(err, s.db.Close())
	})
	if errors.Is(err, ErrInUse) {
		return true, nil
	}
	return false, err
}

// timeInName is the form of the time in the name of what was moved aside.
const timeInName = "20060102T150405Z"

// resettable returns why a ledger is not reset, given the error of reading it: without force only a
// damaged one is.
func resettable(err error, force bool) error {
	_, otherSchema := errors.AsType[*SchemaError](err)
	switch {
	case IsDamaged(err), force && (err == nil || otherSchema):
		return nil
	case otherSchema:
		return fmt.Errorf("the ledger is not damaged: %w; with --force it is moved aside nevertheless", err)
	case err == nil:
		return ErrNotDamaged
	}
	return err
}

// Reset moves the ledger in a directory aside, and returns its new path, which has the time in it.
// The next Open begins an empty ledger. Without force a ledger that is not damaged stays where it is,
// and so does always one that is in use or that the file system does not let be read.
func Reset(dir string, force bool, now time.Time) (aside string, err error) {
	path := filepath.Join(dir, "ledger.db")
	before, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w in %s", ErrNoLedger, dir)
	}
	inUse := false
	if err == nil {
		inUse, err = Inspect(dir)
	}
	if inUse {
		return "", ErrInUse
	}
	if err := resettable(err, force); err != nil {
		return "", err
	}
	lock, err := filelock.Open(path, os.O_RDWR)
	if err != nil {
		return "", fmt.Errorf("move the ledger aside: %w", err)
	}
	defer lock.Close()
	// Between the two locks a daemon may have started, written the file and ended.
	if locked, err := lock.Stat(); err != nil || !os.SameFile(before, locked) || !before.ModTime().Equal(locked.ModTime()) {
		return "", errors.Join(ErrInUse, err)
	}
	if aside, err = unusedName(path + ".aside-" + now.UTC().Format(timeInName)); err != nil {
		return "", fmt.Errorf("move the ledger aside: %w", err)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("move the ledger aside: %w", err)
	}
	return aside, nil
}

// unusedName returns a path at which there is no file: the given one, or one with a number.
func unusedName(path string) (string, error) {
	for name, n := path, 2; ; name, n = fmt.Sprintf("%s-%d", path, n), n+1 {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// Reset puts an empty ledger in place of the present one, after it has copied all objects to names
// that begin with the returned prefix, which has the time in it. Without force it does so with a
// damaged ledger only. Whoever has written the ledger is deposed. It fails without effect if another
// replica writes meanwhile.
func (s *Shared) Reset(force bool, now time.Time) (aside string, err error) {
	names, err := s.objects.List()
	if err != nil {
		return "", fmt.Errorf("read ledger: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name != indexName && !strings.HasPrefix(name, segment.Prefix) // copied by an earlier Reset
	})
	if len(names) == 0 {
		return "", fmt.Errorf("%w in the management cluster", ErrNoLedger)
	}
	_, err = s.Contents()
	if err := resettable(err, force); err != nil {
		return "", err
	}
	aside = "aside-" + strings.ToLower(now.UTC().Format(timeInName)) + "-"
	next, version := index{Schema: schema, Holder: s.holder}, ""
	for _, name := range names {
		value, found, err := s.objects.Get(name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			_, err = s.objects.Create(aside+name, value)
		}
		if err != nil {
			return "", fmt.Errorf("copy the ledger: %w", err)
		}
		term, _ := segment.TermOf(name)
		if name == indexName {
			version = found
			var x index
			_ = json.Unmarshal(value, &x) // of a damaged one the terms of its segments are enough
			term = x.Term
		}
		next.Term = max(next.Term, term)
	}
	// In a later term than all segments their names are not used again, and no replica that has read
	// or written them can save any more.
	next.Term++
	if s.version, err = s.putIndex(next, version); err != nil {
		return "", fmt.Errorf("replace the ledger, of which there are copies now: %w", err)
	}
	s.index = next
	s.sweep()
	return aside, nil
}
