// Package store keeps the objects of the hub in memory, as an API server's
// database would: each with a version that rises when it changes, in lists that
// are consistent, with watches that tell what has changed since.
//
// It keeps no history. A watcher that is behind is told of each object once, as
// it is now, so that nobody who reads slowly costs more than the place where
// they stopped. Only deletions have to be remembered, and not forever: who asks
// from before that has to list again.
package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deletions is how many deletions of a kind are remembered.
const deletions = 1000

// A Store is safe for concurrent use. One goroutine may call Replace.
type Store struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionResource]*shelf
	// version is that of the newest change; it rises over restarts.
	version uint64
	// began is the version before the first change: what is older is another
	// process's, and can not be gone on from.
	began uint64
}

// New returns an empty store. Versions count from the time, so that those of a
// process that ran before are smaller, however often it changed something: a
// change takes longer than the microsecond that it is counted as.
func New(now time.Time) *Store {
	began := uint64(now.UnixMicro())
	return &Store{kinds: map[schema.GroupVersionResource]*shelf{}, version: began, began: began}
}

// shelf has the objects of one kind.
type shelf struct {
	slots []*slot // sorted by namespace and name
	// log has the version of every slot, in order, and some that are not a
	// slot's any more.
	log []record
	// gone counts the deletions in log; oldest is the version from which on all
	// are known.
	gone   int
	oldest uint64
	// changed is closed at the next change.
	changed chan struct{}
}

// A slot is one object through all its versions.
type slot struct {
	source Source
	object *Object // the newest version
	born   uint64
	// before are the labels it had until relabeled, for watchers who select by
	// them.
	before    map[string]string
	relabeled uint64
	deleted   bool
}

type record struct {
	version uint64
	slot    *slot
}

func (r record) current() bool { return r.slot.object.version == r.version }

// shelf is called with the lock held for writing.
func (s *Store) shelf(kind schema.GroupVersionResource) *shelf {
	k := s.kinds[kind]
	if k == nil {
		k = &shelf{oldest: s.began, changed: make(chan struct{})}
		s.kinds[kind] = k
	}
	return k
}

// Replace makes sources all there is of a kind, and reports whether that
// changed anything. They are sorted by namespace and name, none twice; the list
// is not kept. What is the same as before keeps its version.
func (s *Store) Replace(kind schema.GroupVersionResource, sources []Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.shelf(kind)
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
	k.tidy()
	close(k.changed)
	k.changed = make(chan struct{})
	return true
}

// named reports whether the objects are those of the sources, none more and
// none less: that is the usual case, and costs no memory.
func (k *shelf) named(sources []Source) bool {
	return slices.EqualFunc(k.slots, sources, func(old *slot, source Source) bool { return Compare(old.source, source) == 0 })
}

// rename makes sources all there is where objects come or go.
func (s *Store) rename(k *shelf, sources []Source) {
	slots := make([]*slot, 0, len(sources))
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

func (s *Store) add(k *shelf, source Source) *slot {
	n := &slot{source: source}
	s.put(k, n, source.Object())
	n.born = n.object.version
	return n
}

func (s *Store) update(k *shelf, o *slot, source Source) {
	if source.Same(o.source) {
		return
	}
	object := source.Object()
	if !maps.Equal(o.object.Labels, object.Labels) {
		o.before, o.relabeled = o.object.Labels, s.version+1
	}
	s.put(k, o, object)
	o.source = source
}

func (s *Store) remove(k *shelf, o *slot) {
	o.deleted = true
	s.put(k, o, o.object.copy())
	k.gone++
}

func (s *Store) put(k *shelf, o *slot, object *Object) {
	s.version++
	object.stamp(s.version)
	o.object = object
	k.log = append(k.log, record{s.version, o})
}

// tidy forgets versions that are nobody's, and the older deletions when there
// are too many.
func (k *shelf) tidy() {
	surplus := 0
	if k.gone > deletions {
		surplus = k.gone - deletions/2
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
