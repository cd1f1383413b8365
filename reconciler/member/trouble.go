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

// A trouble is the reason why one object is not as desired, and the time of its next retry.
type trouble struct {
	cond        metav1.Condition
	diffs       []api.Difference
	drift       bool
	gen         int64
	since       time.Time // time of the condition
	first, last time.Time // when the differences were first and last seen

	hash string // hash of the content that was tried
	// refused is the ownership state of the object if it was not written because of its state;
	// nil if it failed for another reason.
	refused     *observed.Standing
	unknownKind bool
	// notDeleted is the reason why the cluster does not delete an undesired object.
	notDeleted string
	// recreate says that the object requests recreation, and that the server refused it because
	// of immutable fields.
	recreate bool
	// notRecreated is why it was not recreated the last time, if the history has that.
	notRecreated string
	// namespaceMissing says that it failed because its namespace is missing.
	namespaceMissing bool
	// pending says that the reason will pass by itself.
	pending  bool
	failures retry.Backoff
	next     time.Time
	logged   retry.LogLimiter
}

// The shortest and longest time between two retries of one object.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// confirmation is the delay after which an object that was not written is checked once
	// more: two changes of one writer to the same fields within a second cannot be told apart.
	confirmation = 2 * time.Second
	// unwatchedRetry is the delay of a retry if the watch reports the changes that matter, in
	// case that it fails to.
	unwatchedRetry = 6 * time.Hour
)

// fail records why an object is not as desired, and schedules its retry with backoff. The
// backoff ends when its content changes, or something happens that it waited for.
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
		first = 100 * time.Millisecond // the missing object is just being applied
	}
	t.next = now.Add(max(t.failures.Next(first, lastRetry), connection.RetryAfter(o.err)))
	switch {
	case t.unknownKind:
		t.next = s.kinds.NextLookup(o.manifest.Object.Object.GroupVersionKind()) // one lookup serves all objects of a kind
	case o.spared != "" && o.err == nil && !s.watched(id):
		t.next = now.Add(reportInterval)
	case t.refused != nil && s.watched(id) && !confirmed:
		t.next = now.Add(confirmation)
	case t.refused != nil && s.watched(id):
		t.next = now.Add(unwatchedRetry) // the watch reports any change of it
	}
	if s.works.reports(o.placement) && o.err == nil {
		t.next = s.compared.Add(reportInterval)
	}
	if o.err != nil && o.do != diff.NeedRead && !t.recreate && t.logged.Due(o.cond.Reason+connection.RefusalReason(o.err)) {
		s.cfg.Log.Warn("object not applied", "cluster", s.cfg.Name, "placement", o.placement.String(),
			"object", id.String(), "err", o.cond.Message)
	}
}

// passes reports whether the reason why an object was not applied will pass by itself: its
// definition or namespace is placed here too, or an API server or admission webhook does not
// respond.
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

// hurry returns the failed objects of a namespace, which are to be retried at once. That retry
// does not increase their backoff, and resets that of objects that waited for the namespace.
func (s *session) hurry(namespace string) (ids []api.ID) {
	for id, t := range s.trouble {
		if id.Namespace == namespace && !t.unknownKind {
			if t.failures--; t.namespaceMissing || t.failures < 0 {
				t.failures = 0
			}
			t.next = time.Now() // not zero, since the timer has to be set
			ids = append(ids, id)
		}
	}
	return ids
}

// watched reports whether the watch reports every change of an object.
func (s *session) watched(id api.ID) bool {
	w, isWanted := s.wanted.of(id)
	return isWanted && s.live.Of(id) != nil && s.watch.Of(w.manifest.Object.Object.GroupVersionKind()).Complete()
}
