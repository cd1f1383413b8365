package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// baseStores are the stores of the commits in the cache of Bases that this process has used. Of those that are open, the number and
// the memory of their indexes are limited: others are closed, those first that were not used for longest, and opened again when
// something is read from them. Everything is guarded by Bases.mu. A store is closed only while nobody holds usedBase.reading, so that
// who does may go on reading without the mutex.
type baseStores struct {
	dir    string
	used   map[plumbing.Hash]*usedBase
	deltas *objects.DeltaBases
	// maxOpen and maxIndexes limit the stores that are open, and the bytes of their indexes.
	maxOpen    int
	maxIndexes int64
}

// A usedBase is a commit in the cache that this process has used.
type usedBase struct {
	last time.Time // of use

	// reading is held while the store is read, so that it is not closed meanwhile.
	reading sync.RWMutex
	store   *objects.Store // nil while it is closed
}

// baseIdle is how long a commit counts as in use after something was read from it. A commit of the hub is loaded within it.
const baseIdle = 10 * time.Minute

func newBaseStores(dir string) baseStores {
	return baseStores{dir: dir, used: map[plumbing.Hash]*usedBase{}, deltas: objects.NewDeltaBases(), maxOpen: 64, maxIndexes: 64 * mib}
}

func (u *usedBase) idle(now time.Time) bool { return now.Sub(u.last) >= baseIdle }

func (u *usedBase) close() {
	if u.store != nil {
		u.reading.Lock()
		defer u.reading.Unlock()
		_ = u.store.Close() // nothing was written
		u.store = nil
	}
}

func (s *baseStores) path(h plumbing.Hash) string { return filepath.Join(s.dir, h.String()) }

// open returns a commit in the cache, whose store is open until the next call. The error is errNotFetched if it is not there.
func (s *baseStores) open(h plumbing.Hash, now time.Time) (*usedBase, error) {
	base := s.used[h]
	if base == nil {
		base = &usedBase{}
	}
	base.last = now
	if base.store == nil {
		st, err := objects.LoadSharing(s.path(h), s.deltas)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errNotFetched
		case err != nil:
			return nil, fmt.Errorf("read it from the cache: %w", err)
		}
		base.store = st
		s.used[h] = base
		_ = os.Chtimes(s.path(h), now, now) // says that it is used; it is fetched again if it is removed
		s.closeOthers(base, now)
	}
	return base, nil
}

// closeOthers closes stores that are idle, or more than may be open, except for one.
func (s *baseStores) closeOthers(except *usedBase, now time.Time) {
	open := slices.DeleteFunc(slices.Collect(maps.Values(s.used)), func(u *usedBase) bool { return u.store == nil || u == except })
	slices.SortFunc(open, func(a, b *usedBase) int { return b.last.Compare(a.last) }) // the newest first
	indexes := except.store.IndexBytes()
	for i, u := range open {
		if indexes += u.store.IndexBytes(); u.idle(now) || i+1 >= s.maxOpen || indexes > s.maxIndexes {
			u.close()
		}
	}
}

// remove removes a commit from the cache.
func (s *baseStores) remove(h plumbing.Hash) error {
	if base := s.used[h]; base != nil {
		base.close()
	}
	delete(s.used, h)
	return os.RemoveAll(s.path(h))
}

// errNotFetched is the reason why a commit is not in the cache if nothing is known about an attempt to fetch it.
var errNotFetched = errors.New("it was not fetched yet; gitfleet lock fetches what is missing here, and the daemon what it needs")
