package store

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrGone says that not all changes since a version are known: list again.
var ErrGone = errors.New("the changes since that version are not known any more")

// A Watch says what a watcher is told.
type Watch struct {
	Query
	// From is the version from which on changes are told.
	From uint64
	// Initial tells all there is first, and then a bookmark, if Bookmark is
	// set.
	Initial bool
	// Bookmark makes the object of a bookmark; nil if none are wanted. first is
	// for the one after all that was there at the beginning.
	Bookmark func(version uint64, first bool) *Object
	// Every is the time between bookmarks.
	Every time.Duration
	// Show is what becomes of an object before it is told.
	Show func(*Object) *Object
	// Gone makes the error for a watcher that cannot go on.
	Gone func(error) watch.Event
}

// ahead is how many events wait for a watcher to take them. They are few, since
// what waits here is not replaced by newer versions any more.
const ahead = 8

// Watch tells changes until ctx is done or the watcher is stopped. It costs
// nobody else anything if events are not taken.
func (s *Store) Watch(ctx context.Context, w Watch) (watch.Interface, error) {
	if err := s.known(w); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &teller{store: s, Watch: w, events: make(chan watch.Event, ahead), cancel: cancel}
	go t.run(ctx)
	return t, nil
}

// known reports whether the watcher can begin, and makes a place for a kind that
// it may be the first to ask for.
func (s *Store) known(w Watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.shelf(w.Kind)
	if !w.Initial && (w.From < k.oldest || w.From > s.version) {
		return ErrGone
	}
	return nil
}

// A teller tells one watcher.
type teller struct {
	Watch
	store  *Store
	events chan watch.Event
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (t *teller) Stop() { t.cancel() }

// ResultChan implements watch.Interface.
func (t *teller) ResultChan() <-chan watch.Event { return t.events }

func (t *teller) run(ctx context.Context) {
	defer close(t.events)
	if t.Initial && !t.initial(ctx) {
		return
	}
	var bookmark <-chan time.Time
	if t.Bookmark != nil && t.Every > 0 {
		ticker := time.NewTicker(t.Every)
		defer ticker.Stop()
		bookmark = ticker.C
	}
	for {
		events, changed, err := t.store.since(t.Query, &t.From)
		if err != nil {
			t.tell(ctx, t.Gone(err))
			return
		}
		for _, e := range events {
			if !t.tell(ctx, watch.Event{Type: e.Type, Object: t.Show(e.Object)}) {
				return
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-bookmark:
			if !t.tell(ctx, watch.Event{Type: watch.Bookmark, Object: t.Bookmark(t.From, false)}) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// initial tells all there is, page by page: what changes meanwhile is told
// afterwards.
func (t *teller) initial(ctx context.Context) bool {
	namespace, name := "", ""
	for first := true; ; first = false {
		page := t.store.List(t.Query, namespace, name, ahead)
		if first {
			t.From = page.Version
		}
		for _, o := range page.Objects {
			namespace, name = o.Namespace, o.Name
			if !t.tell(ctx, watch.Event{Type: watch.Added, Object: t.Show(o)}) {
				return false
			}
		}
		if page.Left == 0 {
			break
		}
	}
	return t.Bookmark == nil || t.tell(ctx, watch.Event{Type: watch.Bookmark, Object: t.Bookmark(t.From, true)})
}

func (t *teller) tell(ctx context.Context, e watch.Event) bool {
	select {
	case t.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

type change struct {
	Type   watch.EventType
	Object *Object
}

// since returns a few changes since a version, and moves that on. With none
// there is, it returns what is closed at the next.
func (s *Store) since(q Query, from *uint64) ([]change, <-chan struct{}, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[q.Kind]
	if *from < k.oldest {
		return nil, nil, ErrGone
	}
	var changes []change
	since := *from
	for _, r := range k.log[k.after(since):] {
		if len(changes) == ahead {
			return changes, k.changed, nil
		}
		*from = r.version
		if !r.current() {
			continue
		}
		if typ := q.event(r.slot, since); typ != "" {
			changes = append(changes, change{typ, r.slot.object})
		}
	}
	*from = s.version
	return changes, k.changed, nil
}

// event is what became of an object for who asks, since a version; empty if it
// is none of theirs.
func (q Query) event(o *slot, since uint64) watch.EventType {
	before := o.born <= since
	is := q.matches(o.object)
	if before && o.relabeled > since && q.Labels != nil {
		before = q.Labels.Matches(labels.Set(o.before))
	} else if q.Labels != nil {
		before = before && q.Labels.Matches(labels.Set(o.object.Labels))
	}
	inReach := Query{Kind: q.Kind, Namespace: q.Namespace, Fields: q.Fields}.matches(o.object)
	switch {
	case !inReach:
		return ""
	case o.deleted && before:
		return watch.Deleted
	case o.deleted:
		return ""
	case is && before:
		return watch.Modified
	case is:
		return watch.Added
	case before:
		return watch.Deleted
	}
	return ""
}
