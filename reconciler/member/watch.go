package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A live is all that is kept of an object on the member.
type live struct {
	uid        types.UID
	version    uint64 // resourceVersion; servers since 1.35 promise that it grows
	generation int64
	// managed is the hash of our entry in managedFields. The server rewrites
	// that entry whenever somebody else changes or removes a field we own, and
	// leaves it alone otherwise: an unchanged hash is an unchanged object, as
	// far as it is ours.
	managed string
	// applied is when an apply under our name last changed the object, in seconds
	// since 1970: if we did not, somebody else uses our name.
	applied int64
	// others sums up what others own; see othersOf.
	others uint64
	// fleet is the value of the managed-by label.
	fleet string
	// writer is who last changed the object besides us, as far as it says.
	writer      string
	terminating bool
	// owned says that it has owner references, scaled that an autoscaler wrote to
	// it, kept that it asks not to be deleted, foreground that what was made of it
	// is deleted first.
	owned, scaled, kept, foreground bool
	// finalizers are those of an object that is terminating, separated by commas, but
	// for the garbage collector's.
	finalizers string
	health     health.Health
}

// A kindWatch follows the objects of one kind that carry the managed-by label,
// of whichever fleet.
type kindWatch struct {
	gvk schema.GroupVersionKind
	res resource
	// full says that whole objects are watched, not only their metadata.
	full bool
	// expressions are those of the objects that are wanted.
	expressions *wantedExpressions

	// Whoever follows has these: where the watch is, empty if a list is due; when
	// the last list began; how often it failed since all was well; how often no
	// watch could be begun since one was.
	version string
	since   time.Time
	failed  backoff
	unbegun backoff

	underway underway
	// retired says that nothing it saw is taken in any more: another watch may
	// follow the kind, and know better. It belongs to the lock of the changes.
	retired bool
	// synced says that there was a complete list, refused that the server does not
	// let us list the kind; it is tried again all the same.
	synced, refused atomic.Bool
}

// watches are those of a session, one for each kind. They are few.
type watches []*kindWatch

// of returns the watch of a kind; nil if there is none.
func (ws watches) of(gvk schema.GroupVersionKind) *kindWatch {
	for _, k := range ws {
		if k.gvk == gvk {
			return k
		}
	}
	return nil
}

// begin lets watches tell of changes. Until a pass is over nobody could act on
// them, and what it writes itself would cost the server most while it writes.
func (ws watches) begin() {
	for _, k := range ws {
		k.underway.begin()
	}
}

func (s *session) endWatch(k *kindWatch) {
	k.underway.end()
	s.changes.retire(k)
	s.watch = slices.DeleteFunc(s.watch, func(o *kindWatch) bool { return o == k })
}

// sees reports whether the watch knows of every object of the kind: only then
// is what it does not know not there.
func (k *kindWatch) sees() bool { return k != nil && k.synced.Load() }

// changes collects what watches saw until the session takes it. The newest word
// on an object replaces older ones, so that it never grows beyond the number
// of objects, however long the session is busy.
type changes struct {
	mu sync.Mutex
	taken
	wake chan struct{} // capacity one
}

// taken is what was collected. Lists were before everything else.
type taken struct {
	lists map[schema.GroupKind]listed
	seen  map[api.ID]*live
	gone  map[api.ID]uint64
	// replies are what pods said; nil if none was asked.
	replies map[api.ID]reply
}

// A listed is which objects of a kind there were at a version: all others that
// are known are gone.
type listed struct {
	found   map[api.ID]bool
	version uint64
}

func newTaken() taken {
	return taken{lists: map[schema.GroupKind]listed{}, seen: map[api.ID]*live{}, gone: map[api.ID]uint64{}}
}

func newChanges() *changes { return &changes{taken: newTaken(), wake: make(chan struct{}, 1)} }

// note takes in what a watch saw, unless it is retired.
func (c *changes) note(by *kindWatch, saw func(*taken)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !by.retired {
		saw(&c.taken)
		c.nudge()
	}
}

// retire has what a watch sees from now on not taken in.
func (c *changes) retire(k *kindWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.retired = true
}

func (c *changes) put(by *kindWatch, id api.ID, l *live) {
	c.note(by, func(t *taken) {
		t.seen[id] = l
		delete(t.gone, id)
	})
}

func (c *changes) remove(by *kindWatch, id api.ID, version uint64) {
	c.note(by, func(t *taken) {
		delete(t.seen, id)
		t.gone[id] = version
	})
}

// list notes that a watch has listed its kind in full. What was seen of it before
// and not found is not there any more.
func (c *changes) list(by *kindWatch, l listed) {
	kind := by.gvk.GroupKind()
	c.note(by, func(t *taken) {
		t.lists[kind] = l
		maps.DeleteFunc(t.seen, func(id api.ID, _ *live) bool { return id.GroupKind() == kind && !l.found[id] })
	})
}

func (c *changes) reply(replies map[api.ID]reply) {
	c.mu.Lock()
	c.replies = replies // the next are not asked before these are taken
	c.mu.Unlock()
	c.nudge()
}

func (c *changes) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns what was collected and starts anew.
func (c *changes) take() taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.taken
	c.taken = newTaken()
	return t
}

// follow lists, and has itself told of changes, until ctx is done. It never gives
// up: a list or a watch that fails is tried again, more slowly each time. While a
// watch has nothing to tell nobody waits for it: what comes at its end goes on
// from there.
func (s *session) follow(ctx context.Context, k *kindWatch) {
	for ctx.Err() == nil && !k.underway.over() {
		err := s.followOn(ctx, k)
		if err == nil {
			return // it is told of
		}
		s.falter(ctx, k, err)
	}
	s.running.Done()
}

// followOn begins a watch, after a list unless it is known from where to go on.
func (s *session) followOn(ctx context.Context, k *kindWatch) error {
	asking, cancel := context.WithCancel(ctx)
	k.underway.is(cancel)
	if k.version == "" {
		k.since = time.Now()
		version, err := s.list(asking, k)
		if err != nil {
			cancel()
			return fmt.Errorf("list: %w", err)
		}
		k.version = version
		k.synced.Store(true)
		s.learned()
	}
	if k.underway.waits(func() { s.follow(ctx, k) }) {
		cancel()
		return nil
	}
	if err := s.watchFrom(ctx, asking, cancel, k); err != nil {
		cancel()
		return fmt.Errorf("%w: %w", errUnbegun, err)
	}
	return nil
}

// learned has whoever waits for a first list look whether it was there.
func (s *session) learned() {
	select {
	case s.firsts <- struct{}{}:
	default:
	}
}

// mostUnbegun is how often a watch is asked for again before everything is listed
// anew: the server may never take the version.
const mostUnbegun = 4

// errUnbegun says that the server has not begun a watch: it may be too busy for it, or
// not there.
var errUnbegun = errors.New("watch not begun")

// asksAgain reports whether a watch that has not begun is asked for from the same
// version again.
func (k *kindWatch) asksAgain(err error) bool {
	return errors.Is(err, errUnbegun) && k.unbegun < mostUnbegun && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err)
}

// falter waits after a list or a watch that failed; then everything is listed
// anew, unless a watch has only not begun.
func (s *session) falter(ctx context.Context, k *kindWatch, err error) {
	if ctx.Err() != nil || k.underway.over() {
		return
	}
	s.cfg.Metrics.WatchRestarts.WithLabelValues(s.cfg.Name).Inc()
	if k.asksAgain(err) {
		s.cfg.Log.Debug("watch is asked for again", "cluster", s.cfg.Name, "kind", k.gvk.String(), "err", err)
		sleep(ctx, k.unbegun.next(250*time.Millisecond, 30*time.Second))
		return
	}
	k.version, k.unbegun = "", 0
	if time.Since(k.since) > time.Minute {
		k.failed = 0
		return
	}
	s.access.refused(err)
	if apierrors.IsForbidden(err) && !k.sees() && k.refused.CompareAndSwap(false, true) {
		s.cfg.Log.Warn("kind may not be listed: changes by others will not be noticed; give gitfleet the right to list and watch it",
			"cluster", s.cfg.Name, "kind", k.gvk.String(), "err", err)
		s.learned()
	}
	s.cfg.Log.Debug("watch ended", "cluster", s.cfg.Name, "kind", k.gvk.String(), "err", err)
	sleep(ctx, k.failed.next(250*time.Millisecond, 30*time.Second))
}

const selector = api.ManagedByLabel

// list reads all objects page by page and reports them, and at the end that
// these are all.
func (s *session) list(ctx context.Context, k *kindWatch) (string, error) {
	found := map[api.ID]bool{}
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := s.listPage(ctx, k, opts)
		if err != nil {
			return "", err
		}
		err = meta.EachListItem(page, func(o runtime.Object) error {
			id, l := k.look(o)
			found[id] = true
			s.changes.put(k, id, l)
			return nil
		})
		if err != nil {
			return "", err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return "", err
		}
		if opts.Continue = m.GetContinue(); opts.Continue == "" {
			s.changes.list(k, listed{found, number(m.GetResourceVersion())})
			return m.GetResourceVersion(), nil
		}
	}
}

func (s *session) listPage(ctx context.Context, k *kindWatch, opts metav1.ListOptions) (runtime.Object, error) {
	if k.full {
		return s.wholePage(ctx, k.res, "", opts)
	}
	return s.page(ctx, k.res.GroupVersionResource, "", opts)
}

// watchFrom has the changes since k.version told, and follow go on when the server
// ends the watch: from there, or after a list if what was told was wrong. It is
// asked for with a context of its own, of which nothing is kept if the connection
// can do without.
func (s *session) watchFrom(ctx, asking context.Context, cancel context.CancelFunc, k *kindWatch) error {
	events, err := s.openWatch(asking, k, k.version)
	if err != nil {
		return err
	}
	k.unbegun = 0
	start, toldAny := time.Now(), false
	var text lines
	var broken error
	body, light := events.(*lean.Body)
	if light {
		k.underway.is(func() { body.Close() })
	}
	follow(events, func(piece []byte, end error) {
		if end == nil {
			if broken == nil {
				broken = text.add(piece, func(line []byte) error {
					toldAny = true
					what, o, err := k.decodeEvent(line)
					if err == nil {
						k.version = s.told(k, what, o)
					}
					return err
				})
			}
			if broken != nil {
				events.Close()
			}
			return
		}
		text.drop()
		events.Close()
		cancel()
		if restarted := k.underway.wasRestarted(); broken == nil && !toldAny && !restarted && time.Since(start) < time.Second && !errors.Is(end, lean.ErrRenewed) {
			broken = errShortWatch // or we would ask again without pause
		}
		if broken != nil {
			s.falter(ctx, k, fmt.Errorf("watch: %w", broken))
		}
		s.follow(ctx, k)
	})
	if light {
		cancel()
	}
	return nil
}

// told takes in one event of a watch, and returns the version it is of.
func (s *session) told(k *kindWatch, what watch.EventType, o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		panic("member: object without metadata: " + err.Error()) // it was decoded as one
	}
	switch what {
	case watch.Bookmark:
	case watch.Deleted:
		id, l := k.look(o)
		s.changes.remove(k, id, l.version)
	default:
		id, l := k.look(o)
		s.changes.put(k, id, l)
	}
	return m.GetResourceVersion()
}

var errShortWatch = errors.New("it ended at once and told nothing")

// look keeps of an object what we need of it.
func (k *kindWatch) look(o runtime.Object) (api.ID, *live) {
	m, err := meta.Accessor(o)
	if err != nil {
		panic("member: object without metadata: " + err.Error())
	}
	id := api.ID{Group: k.gvk.Group, Kind: k.gvk.Kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	l := liveOf(m)
	l.health = k.health(o, k.expressions.of(id))
	return id, l
}

// health tells whether an object is available, by its expression if it has one.
func (k *kindWatch) health(o runtime.Object, expression string) health.Health {
	u, whole := o.(*unstructured.Unstructured)
	switch {
	case whole && expression != "":
		return k.expressions.compiled.health(u, expression)
	case expression != "":
		return health.Health{State: health.NotAvailableYet, Message: "not looked at yet"}
	case whole:
		return health.Of(u)
	default:
		return health.OfKind(k.gvk)
	}
}

func liveOf(m metav1.Object) *live {
	entries := m.GetManagedFields() // of an unstructured object they are converted each time
	terminating := m.GetDeletionTimestamp() != nil
	finalizers := ""
	if terminating {
		finalizers = strings.Join(slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool { return f == metav1.FinalizerDeleteDependents }), ", ")
	}
	return &live{
		uid:         m.GetUID(),
		version:     number(m.GetResourceVersion()),
		generation:  m.GetGeneration(),
		managed:     diff.ApplyHash(entries, api.FieldManager),
		applied:     diff.AppliedAt(entries, api.FieldManager).Unix(),
		others:      othersOf(entries),
		fleet:       m.GetLabels()[api.ManagedByLabel],
		terminating: terminating,
		finalizers:  finalizers,
		owned:       len(m.GetOwnerReferences()) > 0,
		scaled:      diff.Autoscaled(entries),
		kept:        m.GetAnnotations()[api.PruneAnnotation] == api.PruneDisabled,
		foreground:  slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents),
		writer:      writer(entries),
	}
}

// writer names the last of the managers besides us.
func writer(entries []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply || e.Subresource == "status" || e.Time == nil {
			continue
		}
		if last == nil || !e.Time.Before(last.Time) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return unique.Make(last.Manager).Value()
}

// number reads a resource version; zero for one that is not a number, which is
// never older than anything.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
