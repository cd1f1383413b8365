package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A kindWatch watches the objects of one kind that have the managed-by label, of any fleet.
type kindWatch struct {
	gvk schema.GroupVersionKind
	res connection.Resource
	// full says that whole objects are watched, not only their metadata.
	full bool
	// expressions are those of the objects that are wanted.
	expressions *wantedExpressions

	// The following fields belong to follow. resourceVersion is where the watch resumes; if it
	// is empty, the next request is a list. since is when the last list began, failed counts
	// the failures since then, unbegun the consecutive watches that the server has not started.
	resourceVersion string
	since           time.Time
	failed          retry.Backoff
	unbegun         retry.Backoff

	// begun is closed once changes may be reported; stop ends the watch.
	begun chan struct{}
	stop  context.CancelFunc

	mu            sync.Mutex
	cancelRequest context.CancelCauseFunc // cancels the request under way

	// retired says that nothing it saw is recorded any more, since another watch may have
	// replaced it. The lock of the changes guards it.
	retired bool
	// synced says that there was a complete list, refused that the kind may not be listed; it
	// is retried nevertheless.
	synced, refused atomic.Bool
}

// newKindWatch returns a watch that has not been started.
func newKindWatch(gvk schema.GroupVersionKind, res connection.Resource) *kindWatch {
	return &kindWatch{gvk: gvk, res: res, begun: make(chan struct{}), stop: func() {}, cancelRequest: func(error) {}}
}

// begin lets the watch report changes. Only the goroutine of the session calls it.
func (k *kindWatch) begin() {
	select {
	case <-k.begun:
	default:
		close(k.begun)
	}
}

// errReconnected cancels a request of a watch because the connection was replaced.
var errReconnected = errors.New("connection replaced")

// reconnect cancels the request under way. The watch resumes where it was, over the new
// connection.
func (k *kindWatch) reconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancelRequest(errReconnected)
}

// requestContext returns the context of the next list and watch, which reconnect cancels.
func (k *kindWatch) requestContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancelRequest = cancel
	return ctx, cancel
}

// watches are those of a session, one for each kind.
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

// begin lets watches report changes. During a pass nobody could act on them, and reporting the
// writes of the pass would cost the server most then.
func (ws watches) begin() {
	for _, k := range ws {
		k.begin()
	}
}

func (s *session) endWatch(k *kindWatch) {
	k.stop()
	s.changes.retire(k)
	s.watch = slices.DeleteFunc(s.watch, func(o *kindWatch) bool { return o == k })
}

// sees reports whether the watch knows every object of the kind: only then is an unknown object
// one that does not exist.
func (k *kindWatch) sees() bool { return k != nil && k.synced.Load() }

// follow lists and watches until ctx is done. A list or watch that fails is retried with
// backoff.
func (s *session) follow(ctx context.Context, k *kindWatch) {
	for ctx.Err() == nil {
		request, cancel := k.requestContext(ctx)
		events, err := s.listAndOpen(request, k)
		if err == nil {
			err = s.readEvents(k, events)
		}
		reconnected := context.Cause(request) == errReconnected
		cancel(nil)
		if err != nil && !reconnected {
			s.falter(ctx, k, err)
		}
	}
}

// listAndOpen starts a watch, after a list if it is not known where to resume.
func (s *session) listAndOpen(ctx context.Context, k *kindWatch) (*eventStream, error) {
	if k.resourceVersion == "" {
		k.since = time.Now()
		version, err := s.list(ctx, k)
		if err != nil {
			k.since = time.Now() // a list that fails late is retried with backoff, too
			return nil, fmt.Errorf("list: %w", err)
		}
		k.resourceVersion = version
		k.synced.Store(true)
		s.learned()
	}
	select {
	case <-k.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	events, err := s.openWatch(ctx, k, k.resourceVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnbegun, err)
	}
	return events, nil
}

// learned wakes waitForLists.
func (s *session) learned() {
	select {
	case s.firsts <- struct{}{}:
	default:
	}
}

// mostUnbegun is how often a watch is requested again before everything is listed again: the
// server may never accept the version.
const mostUnbegun = 4

// errUnbegun says that the server has not started a watch: it may be overloaded, or not there.
var errUnbegun = errors.New("watch not begun")

// asksAgain reports whether a watch that has not started is requested again from the same
// version.
func (k *kindWatch) asksAgain(err error) bool {
	return errors.Is(err, errUnbegun) && k.unbegun < mostUnbegun && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err)
}

// falter waits after a list or watch that failed. Then everything is listed again, unless the
// watch has only not started.
func (s *session) falter(ctx context.Context, k *kindWatch, err error) {
	if ctx.Err() != nil {
		return
	}
	s.cfg.Metrics.WatchRestarts.WithLabelValues(s.cfg.Name).Inc()
	if k.asksAgain(err) {
		s.cfg.Log.Debug("watch is asked for again", "cluster", s.cfg.Name, "kind", k.gvk.String(), "err", err)
		retry.Sleep(ctx, k.unbegun.Next(250*time.Millisecond, 30*time.Second))
		return
	}
	k.resourceVersion, k.unbegun = "", 0
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
	retry.Sleep(ctx, k.failed.Next(250*time.Millisecond, 30*time.Second))
}

const selector = api.ManagedByLabel

// list reads all objects page by page, records them, and finally records that these are all.
func (s *session) list(ctx context.Context, k *kindWatch) (string, error) {
	found := map[api.ID]bool{}
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := s.listPage(ctx, k, &opts)
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
			s.changes.list(k, observed.List{Found: found, Version: observed.ParseVersion(m.GetResourceVersion())})
			return m.GetResourceVersion(), nil
		}
	}
}

func (s *session) listPage(ctx context.Context, k *kindWatch, opts *metav1.ListOptions) (runtime.Object, error) {
	if k.full {
		return s.conn.WholePage(ctx, k.res, "", opts)
	}
	return s.conn.Page(ctx, k.res.GroupVersionResource, "", opts)
}

// readEvents records changes until the server ends the watch, which is not an error: the next
// watch resumes there.
func (s *session) readEvents(k *kindWatch, events *eventStream) error {
	defer events.Close()
	k.unbegun = 0
	start, empty := time.Now(), true
	for {
		line, err := events.next()
		if err != nil {
			return watchEnded(err, start, empty)
		}
		if err := s.recordEvent(k, line); err != nil {
			return err
		}
		empty = false
	}
}

// watchEnded returns why a watch cannot simply be resumed; nil if it can.
func watchEnded(err error, start time.Time, empty bool) error {
	if errors.Is(err, errLongLine) {
		return err
	}
	if empty && time.Since(start) < time.Second {
		return errShortWatch // otherwise requests would follow without pause
	}
	return nil
}

// recordEvent records one event of a watch, and its version.
func (s *session) recordEvent(k *kindWatch, line []byte) error {
	what, o, err := k.decodeEvent(line)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		panic("member: object without metadata: " + err.Error()) // decoding has checked it
	}
	switch what {
	case watch.Bookmark:
	case watch.Deleted:
		id, l := k.look(o)
		s.changes.remove(k, id, l.Version)
	default:
		id, l := k.look(o)
		s.changes.put(k, id, l)
	}
	k.resourceVersion = m.GetResourceVersion()
	return nil
}

var errShortWatch = errors.New("watch: it ended at once and told nothing")

// look returns what is kept of an object.
func (k *kindWatch) look(o runtime.Object) (api.ID, *observed.Object) {
	m, err := meta.Accessor(o)
	if err != nil {
		panic("member: object without metadata: " + err.Error())
	}
	id := api.ID{Group: k.gvk.Group, Kind: k.gvk.Kind, Namespace: m.GetNamespace(), Name: m.GetName()}
	l := observed.Of(m)
	l.Health = k.health(o, k.expressions.of(id))
	return id, l
}

// health returns the health of an object, by its expression if it has one.
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
