// Package store keeps the objects of the hub in memory, like the storage of an API server: with
// resource versions, consistent lists, and watches.
package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDeletions is how many deletions of a kind are kept.
const maxDeletions = 1000

// A Store is safe for concurrent use. One goroutine may call Replace.
type Store struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionResource]*kindStore
	// version is the newest version. Versions also increase across restarts.
	version uint64
	// began is the version before the first change: older versions belong to another process,
	// and a watch cannot continue from them.
	began uint64
}

// New returns an empty store. Versions begin with the time, so that those of an earlier process
// are smaller: a version stands for a microsecond, and a change takes longer than that.
func New(now time.Time) *Store {
	began := uint64(now.UnixMicro())
	return &Store{kinds: map[schema.GroupVersionResource]*kindStore{}, version: began, began: began}
}

// A kindStore has the objects of one kind.
type kindStore struct {
	slots []*entry // sorted by namespace and name
	// log has the version of every entry, in order, and some that are outdated.
	log []record
	// gone is the number of deletions in log. oldest is the version since which all changes are
	// known.
	gone   int
	oldest uint64
	// changed is closed at the next change.
	changed chan struct{}
}

// An entry is one object through all its versions.
type entry struct {
	source  Source
	object  *Object // the newest version; nil if it is Transient
	version uint64  // of object
	born    uint64
	// before are its labels until the version relabeled, for watches with a label selector.
	before    map[string]string
	relabeled uint64
	deleted   bool
}

type record struct {
	version uint64
	slot    *entry
}

func (r record) current() bool { return r.slot.version == r.version }

// read returns the newest version of the object.
func (e *entry) read() *Object {
	if e.object != nil {
		return e.object
	}
	o := e.source.Object()
	o.stamp(e.version)
	return o
}

// storeOf returns the store of a kind. The caller holds the write lock.
func (s *Store) storeOf(kind schema.GroupVersionResource) *kindStore {
	k := s.kinds[kind]
	if k == nil {
		k = &kindStore{oldest: s.began, changed: make(chan struct{})}
		s.kinds[kind] = k
	}
	return k
}

// Replace replaces the objects of a kind, and reports whether anything has changed. The sources
// must be sorted by namespace and name and unique; the list is not kept. Unchanged objects keep
// their version.
func (s *Store) Replace(kind schema.GroupVersionResource, sources []Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.storeOf(kind)
	before := s.version
	if k.named(sources) {
		for i, source := range sources {
			s.update(k, k.slots[i], source)
		}
	} else {
		s.rename(k, sources)
	}
	if s.version == before {
		return false
	}
	k.compact()
	close(k.changed)
	k.changed = make(chan struct{})
	return true
}

// named reports whether the keys are those of the sources. That is the usual case, which needs
// no memory.
func (k *kindStore) named(sources []Source) bool {
	return slices.EqualFunc(k.slots, sources, func(old *entry, source Source) bool { return Compare(old.source, source) == 0 })
}

// rename replaces the objects if some are added or removed.
func (s *Store) rename(k *kindStore, sources []Source) {
	slots := make([]*entry, 0, len(sources))
	old := k.slots
	for _, source := range sources {
		for len(old) > 0 && Compare(old[0].source, source) < 0 {
			s.remove(k, old[0])
			old = old[1:]
		}
		if len(old) > 0 && Compare(old[0].source, source) == 0 {
			s.update(k, old[0], source)
			slots = append(slots, old[0])
			old = old[1:]
			continue
		}
		slots = append(slots, s.add(k, source))
	}
	for _, gone := range old {
		s.remove(k, gone)
	}
	k.slots = slots
}

func (s *Store) add(k *kindStore, source Source) *entry {
	n := &entry{source: source}
	s.put(k, n, source.Object)
	n.born = n.version
	return n
}

func (s *Store) update(k *kindStore, o *entry, source Source) {
	if source.Same(o.source) {
		return
	}
	old := o.read().Labels
	o.source = source
	s.put(k, o, source.Object)
	if !maps.Equal(old, o.read().Labels) {
		o.before, o.relabeled = old, s.version
	}
}

func (s *Store) remove(k *kindStore, o *entry) {
	o.deleted = true
	s.put(k, o, func() *Object { return o.object.copy() })
	k.gone++
}

func (s *Store) put(k *kindStore, o *entry, object func() *Object) {
	s.version++
	o.version = s.version
	if _, transient := o.source.(Transient); !transient {
		o.object = object()
		o.object.stamp(s.version)
	}
	k.log = append(k.log, record{s.version, o})
}

// compact removes outdated versions from the log, and old deletions beyond the limit.
func (k *kindStore) compact() {
	surplus := 0
	if k.gone > maxDeletions {
		surplus = k.gone - maxDeletions/2
	}
	if surplus == 0 && len(k.log) <= 2*(len(k.slots)+k.gone)+64 {
		return
	}
	kept := make([]record, 0, len(k.slots)+k.gone)
	for _, r := range k.log {
		switch {
		case !r.current():
		case r.slot.deleted && surplus > 0:
			surplus--
			k.gone--
			k.oldest = r.version
		default:
			kept = append(kept, r)
		}
	}
	k.log = kept
}
