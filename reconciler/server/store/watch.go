package store

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrGone is returned if not all changes since a version are known, so that the client has to
// list again.
var ErrGone = errors.New("the changes since that version are not known any more")

// A Watch configures a watch.
type Watch struct {
	Query
	// From is the version after which changes are sent.
	From uint64
	// Initial sends all existing objects first, and then a bookmark if Bookmark is set.
	Initial bool
	// Bookmark creates the object of a bookmark; nil for no bookmarks. first is true for the
	// one after the initial objects.
	Bookmark func(version uint64, first bool) *Object
	// Every is the time between bookmarks.
	Every time.Duration
	// Show converts an object before it is sent.
	Show func(*Object) *Object
	// Gone returns the event for a watch that cannot continue.
	Gone func(error) watch.Event
}

// watchBuffer is the number of buffered events. It is small, since buffered events are not
// replaced by newer versions.
const watchBuffer = 8

// Watch sends changes until ctx is done or the watch is stopped. A slow client does not affect
// others.
func (s *Store) Watch(ctx context.Context, w Watch) (watch.Interface, error) {
	if err := s.known(w); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &watcher{store: s, Watch: w, events: make(chan watch.Event, watchBuffer), cancel: cancel}
	go t.run(ctx)
	return t, nil
}

// known reports whether the watch can begin, and creates the store of a kind that has none yet.
func (s *Store) known(w Watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.storeOf(w.Kind)
	if !w.Initial && (w.From < k.oldest || w.From > s.version) {
		return ErrGone
	}
	return nil
}

// A watcher serves one watch.
type watcher struct {
	Watch
	store  *Store
	events chan watch.Event
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (t *watcher) Stop() { t.cancel() }

// ResultChan implements watch.Interface.
func (t *watcher) ResultChan() <-chan watch.Event { return t.events }

func (t *watcher) run(ctx context.Context) {
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
			t.send(ctx, t.Gone(err))
			return
		}
		for _, e := range events {
			if !t.send(ctx, watch.Event{Type: e.Type, Object: t.Show(e.Object)}) {
				return
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-bookmark:
			if !t.send(ctx, watch.Event{Type: watch.Bookmark, Object: t.Bookmark(t.From, false)}) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// initial sends all existing objects, page by page; changes made meanwhile are sent afterwards.
func (t *watcher) initial(ctx context.Context) bool {
	namespace, name := "", ""
	for first := true; ; first = false {
		page := t.store.List(t.Query, namespace, name, watchBuffer)
		if first {
			t.From = page.Version
		}
		for _, o := range page.Objects {
			namespace, name = o.Namespace, o.Name
			if !t.send(ctx, watch.Event{Type: watch.Added, Object: t.Show(o)}) {
				return false
			}
		}
		if !page.More {
			break
		}
	}
	return t.Bookmark == nil || t.send(ctx, watch.Event{Type: watch.Bookmark, Object: t.Bookmark(t.From, true)})
}

func (t *watcher) send(ctx context.Context, e watch.Event) bool {
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

// since returns some changes after a version, and advances the version. If there are none, it
// returns a channel that is closed at the next change.
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
		if len(changes) == watchBuffer {
			return changes, k.changed, nil
		}
		*from = r.version
		if !r.current() {
			continue
		}
		object := r.slot.read()
		if typ := q.event(r.slot, object, since); typ != "" {
			changes = append(changes, change{typ, object})
		}
	}
	*from = s.version
	return changes, k.changed, nil
}

// event returns the type of the event for the changes of an object since a version; empty if
// the query does not see them. object is its newest version.
func (q Query) event(o *entry, object *Object, since uint64) watch.EventType {
	before := o.born <= since
	is := q.matches(object)
	if before && o.relabeled > since && q.Labels != nil {
		before = q.Labels.Matches(labels.Set(o.before))
	} else if q.Labels != nil {
		before = before && q.Labels.Matches(labels.Set(object.Labels))
	}
	inReach := Query{Kind: q.Kind, Namespace: q.Namespace, Fields: q.Fields}.matches(object)
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
