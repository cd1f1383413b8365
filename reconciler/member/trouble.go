package member

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A trouble is why one object is not as it should be, and when it is tried
// again.
type trouble struct {
	cond        metav1.Condition
	diffs       []api.Difference
	drift       bool
	gen         int64
	since       time.Time // the condition's
	first, last time.Time // of the differences

	hash string // of the content that was tried
	// refused is how the object stood when it was left alone for what it is; nil
	// if it failed otherwise.
	refused     *observed.Standing
	unknownKind bool
	// notDeleted is why the cluster does not let go of an object that nobody wants.
	notDeleted string
	// recreate says that the object asks to be recreated, and that the server refused it
	// because of immutable fields.
	recreate bool
	// notRecreated is why it was last not recreated, as far as the history has that.
	notRecreated string
	// namespaceMissing says that it failed for want of its namespace.
	namespaceMissing bool
	// pending says that what is in the way comes or passes by itself.
	pending  bool
	failures retry.Backoff
	next     time.Time
	logged   retry.LogLimiter
}

// The bounds of the time between two tries of one object.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// confirmation is when an object that was left alone is looked at once more:
	// what one writer does to the same fields within a second cannot be told apart.
	confirmation = 2 * time.Second
	// unwatchedRetry is for what the watch tells of, should it ever not.
	unwatchedRetry = 6 * time.Hour
)

// fail notes what keeps an object from being as it should, and when to try it
// again: later each time, until its content changes or something happens that
// it was waiting for.
func (s *session) fail(o outcome) {
	o.cond.Message = connection.Cut(o.cond.Message)
	id, now := o.manifest.ID, time.Now()
	t := s.trouble[id]
	if t == nil || t.hash != o.manifest.Hash {
		t = &trouble{hash: o.manifest.Hash}
		s.trouble[id] = t
	}
	if t.cond.Reason != o.cond.Reason || t.since.IsZero() {
		t.since = now
	}
	switch {
	case len(o.diffs) == 0:
		t.first = time.Time{}
	case t.first.IsZero():
		t.first = now
	}
	stands := s.live.Standing(id)
	confirmed := t.refused != nil && *t.refused == stands
	t.cond, t.diffs, t.gen, t.last, t.refused = o.cond, o.diffs, o.gen, now, nil
	if o.err == nil && o.cond.Reason != api.AppliedWithFailedDriftDetection {
		t.refused = &stands
	}
	t.drift = o.item != nil && o.item.Hash != ""
	t.unknownKind, t.namespaceMissing = o.cond.Reason == api.DecodingErred, connection.ForbiddenByNamespace(o.err)
	t.recreate = o.immutable && asksForRecreation(o.manifest)
	t.pending = s.passes(o)
	first := firstRetry
	if t.namespaceMissing {
		first = 100 * time.Millisecond // it comes with what is being applied just now
	}
	t.next = now.Add(max(t.failures.Next(first, lastRetry), connection.RetryAfter(o.err)))
	switch {
	case t.unknownKind:
		t.next = s.kinds.NextLookup(o.manifest.Object.Object.GroupVersionKind()) // one lookup is for all objects of a kind
	case o.spared != "" && o.err == nil && !s.watched(id):
		t.next = now.Add(reportInterval)
	case t.refused != nil && s.watched(id) && !confirmed:
		t.next = now.Add(confirmation)
	case t.refused != nil && s.watched(id):
		t.next = now.Add(unwatchedRetry) // any change of it is told
	}
	if s.works.reports(o.placement) && o.err == nil {
		t.next = s.compared.Add(reportInterval)
	}
	if o.err != nil && o.do != diff.NeedRead && !t.recreate && t.logged.Due(o.cond.Reason+connection.RefusalReason(o.err)) {
		s.cfg.Log.Warn("object not applied", "cluster", s.cfg.Name, "placement", o.placement.String(),
			"object", id.String(), "err", o.cond.Message)
	}
}

// passes reports whether what kept an object from being applied comes or passes by
// itself: its definition or its namespace that is placed here as well, an API server
// or an admission webhook that does not answer.
func (s *session) passes(o outcome) bool {
	var coming *pendingDefinition
	switch {
	case o.err == nil:
		return false
	case errors.As(o.err, &coming), apierrors.HasStatusCause(o.err, "NamespaceTerminating"):
		return true
	case connection.ForbiddenByNamespace(o.err):
		_, placed := s.wanted.of(api.ID{Kind: "Namespace", Name: o.manifest.ID.Namespace})
		return placed
	}
	return connection.IsUnreachable(o.err) ||
		apierrors.IsTooManyRequests(o.err) || apierrors.IsInternalError(o.err) || apierrors.IsServiceUnavailable(o.err) ||
		apierrors.IsServerTimeout(o.err) || apierrors.IsTimeout(o.err)
}

// hurry returns the failed objects of a namespace, to be retried at once. This
// retry does not increase their backoff; the backoff of objects that waited for
// the namespace is reset.
func (s *session) hurry(namespace string) (ids []api.ID) {
	for id, t := range s.trouble {
		if id.Namespace == namespace && !t.unknownKind {
			if t.failures--; t.namespaceMissing || t.failures < 0 {
				t.failures = 0
			}
			t.next = time.Now() // and not never: the timer has to be set for it
			ids = append(ids, id)
		}
	}
	return ids
}

// watched reports whether the watch tells of every change of an object.
func (s *session) watched(id api.ID) bool {
	w, isWanted := s.wanted.of(id)
	return isWanted && s.live.Of(id) != nil && s.watch.Of(w.manifest.Object.Object.GroupVersionKind()).Complete()
}
