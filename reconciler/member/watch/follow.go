package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// follow lists and watches until ctx is done. A list or watch that fails is retried with
// backoff.
func (w *Set) follow(ctx context.Context, k *Kind) {
	for ctx.Err() == nil {
		request, cancel := k.requestContext(ctx)
		events, err := w.listAndOpen(request, k)
		if err == nil {
			err = w.readEvents(request, k, events)
		}
		reconnected := context.Cause(request) == errReconnected
		cancel(nil)
		if err != nil && !reconnected {
			w.waitAfterFailure(ctx, k, err)
		}
	}
}

// listAndOpen starts a watch, after a list if it is not known where to resume.
func (w *Set) listAndOpen(ctx context.Context, k *Kind) (*eventStream, error) {
	if k.resourceVersion == "" {
		k.since = time.Now()
		version, err := w.list(ctx, k)
		if err != nil {
			k.since = time.Now() // a list that fails late is retried with backoff, too
			return nil, fmt.Errorf("list: %w", err)
		}
		k.resourceVersion = version
		k.synced.Store(true)
		wake(w.firsts) // WaitForLists
	}
	select {
	case <-k.mayOpen:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	events, err := w.openWatch(ctx, k, k.resourceVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	return events, nil
}

// maxNotStarted is how many times a watch is requested again before all objects are listed: the
// server may never accept the version.
const maxNotStarted = 4

// errNotStarted says that the server has not started a watch: it may be overloaded or down.
var errNotStarted = errors.New("watch not started")

// resumable reports whether a watch that has not started is requested again from the same
// version.
func (k *Kind) resumable(err error) bool {
	return errors.Is(err, errNotStarted) && k.notStarted < maxNotStarted && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err)
}

// waitAfterFailure backs off after a failed list or watch. All objects are then listed again, unless only the start of the
// watch has failed.
func (w *Set) waitAfterFailure(ctx context.Context, k *Kind, err error) {
	if ctx.Err() != nil {
		return
	}
	w.cfg.Restarts.Inc(w.cfg.Cluster)
	if connection.IsExceeded(err) {
		w.Changes.Exceed(err)
	}
	if k.resourceVersion != "" { // it is not a list that has failed
		w.cfg.Interrupted()
	}
	if k.resumable(err) {
		w.cfg.Log.Debug("watch is requested again", "cluster", w.cfg.Cluster, "kind", k.GVK.String(), "err", err)
		retry.Sleep(ctx, k.notStarted.Next(250*time.Millisecond, 30*time.Second))
		return
	}
	k.resourceVersion, k.notStarted = "", 0
	if time.Since(k.since) > time.Minute {
		k.failed = 0
		return
	}
	w.conn.RecordRefusal(err)
	if connection.Unserved(err) && k.Complete() && k.unserved.CompareAndSwap(false, true) {
		w.Changes.Notify()
	}
	if apierrors.IsForbidden(err) && !k.Complete() && k.refused.CompareAndSwap(false, true) {
		w.cfg.Log.Warn("kind may not be listed: changes by others will not be noticed; grant gitfleet the permissions to list and watch it",
			"cluster", w.cfg.Cluster, "kind", k.GVK.String(), "err", err)
		wake(w.firsts) // WaitForLists
	}
	w.cfg.Log.Debug("watch ended", "cluster", w.cfg.Cluster, "kind", k.GVK.String(), "err", err)
	retry.Sleep(ctx, k.failed.Next(250*time.Millisecond, 30*time.Second))
}

// list reads all objects page by page, records them, and finally records that the list is
// complete.
func (w *Set) list(ctx context.Context, k *Kind) (string, error) {
	found := map[api.ID]bool{}
	at := connection.Listing{ListOptions: metav1.ListOptions{LabelSelector: selector, Limit: k.pageSize()}, Kept: true, Memory: w.conn.Memory()}
	defer at.Done()
	for {
		page, err := w.listPage(ctx, k, &at.ListOptions)
		if err != nil {
			return "", err
		}
		err = meta.EachListItem(page, func(o runtime.Object) error {
			id, l := k.stateOf(o.(metav1.Object))
			if err := at.Keep(textOf(id, l)); err != nil {
				return err
			}
			found[id] = true
			w.Changes.Put(k, id, l)
			return nil
		})
		if err != nil {
			return "", err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return "", err
		}
		more, err := at.Next(m, meta.LenList(page))
		if err != nil {
			return "", err
		}
		if !more {
			version := observed.ParseVersion(m.GetResourceVersion())
			w.compareVersions(ctx, k, version)
			w.Changes.List(k, observed.List{Found: found, Version: version})
			return m.GetResourceVersion(), nil
		}
	}
}

// compareVersions records that the cluster was restored to an earlier state if a list is older than an
// earlier one of the kind, and a second request confirms it. It notices what probes do not: servers may
// keep some kinds in an etcd of their own.
func (w *Set) compareVersions(ctx context.Context, k *Kind, version uint64) {
	if version == 0 || version >= k.listed {
		k.listed = max(k.listed, version)
		return
	}
	again, err := w.conn.Page(ctx, k.res.GroupVersionResource, "", &metav1.ListOptions{Limit: 1})
	if err != nil {
		return
	}
	if v := observed.ParseVersion(again.GetResourceVersion()); v > 0 && v < k.listed {
		w.Changes.SetRestored(fmt.Sprintf("the cluster was restored to an earlier state (the resource version of %s is %d, and was %d)", k.res.Resource, version, k.listed))
		k.listed = version
	}
}

func (w *Set) listPage(ctx context.Context, k *Kind, opts *metav1.ListOptions) (runtime.Object, error) {
	if k.Full {
		return w.conn.WholePage(ctx, k.res, "", opts)
	}
	return w.conn.Page(ctx, k.res.GroupVersionResource, "", opts)
}

// readEvents records changes until the server ends the watch. That is not an error: the next
// watch resumes there.
func (w *Set) readEvents(ctx context.Context, k *Kind, events *eventStream) error {
	defer events.Close()
	k.notStarted = 0
	start, empty := time.Now(), true
	for {
		line, err := events.next()
		switch {
		case connection.IsExceeded(err):
			return err
		case err != nil && empty && time.Since(start) < time.Second:
			return errShortWatch // otherwise requests would follow without a pause
		case err != nil:
			if time.Since(start) < watchTimeout && ctx.Err() == nil {
				w.cfg.Interrupted()
			}
			return nil
		}
		err = w.recordEvent(k, line)
		events.release()
		if err != nil {
			return err
		}
		empty = false
		if w.pace.WaitN(ctx, len(line)) != nil {
			return nil
		}
	}
}

// recordEvent records one event of a watch, and its version.
func (w *Set) recordEvent(k *Kind, line []byte) error {
	what, o, err := k.decodeEvent(line)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	switch what {
	case watch.Bookmark:
	case watch.Deleted:
		id, l := k.stateOf(o)
		w.Changes.Remove(k, id, l)
	default:
		id, l := k.stateOf(o)
		w.Changes.Put(k, id, l)
	}
	k.resourceVersion = o.GetResourceVersion()
	return nil
}

var errShortWatch = errors.New("watch: it ended at once, without an event")
