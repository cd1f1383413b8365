package progress

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A Failure is the reason why one object is not as desired, and the time of its next retry. Objects
// whose drift is left have one too; their condition may say that they are applied.
type Failure struct {
	Cond  diff.Condition
	Diffs []api.Difference
	// Drift says that the differences are drift of an object that was applied.
	Drift      bool
	Generation int64
	// Since is the time of the condition, and FirstSeen and LastSeen are when the differences were first and last seen.
	Since, FirstSeen, LastSeen time.Time

	// Hash is the hash of the content that was tried.
	Hash string
	// Refused is the ownership state of the object if it was not written because of its state;
	// nil if it failed for another reason.
	Refused *observed.OwnershipState
	// Unknown is the kind that the cluster does not serve yet: that of the object, or of one that it waits for. It is zero if the
	// reason is another.
	Unknown schema.GroupVersionKind
	// NotDeleted is the reason why the cluster does not delete an undesired object.
	NotDeleted string
	// Stays is the reason why an undesired object was deleted and still exists; empty if it is not
	// known.
	Stays string
	// Recreate says that the object requests recreation, and that the server refused it because
	// of immutable fields.
	Recreate bool
	// Pending says that the reason will pass by itself.
	Pending bool
	// Next is when the object is tried again, and Backoff counts the attempts.
	Next    time.Time
	Backoff retry.Backoff

	// notRecreated is why it was not recreated the last time, if the history has that.
	notRecreated string
	// namespaceMissing says that it failed because its namespace is missing.
	namespaceMissing bool
	logged           retry.LogLimiter
}

// KindUnknown reports whether the cluster does not serve a kind that the object needs.
func (f Failure) KindUnknown() bool { return !f.Unknown.Empty() }

// A Situation is what matters of an object for its next attempt.
type Situation struct {
	// State is its ownership state, and Watched says that its watch reports every change of it.
	State   observed.OwnershipState
	Watched bool
	// Transient says that the reason of the failure will pass by itself.
	Transient bool
	// Due is when the next attempt is due because of something else: a lookup of its kind, which serves all objects of the kind, or
	// a comparison of its placement. It is zero if nothing else decides.
	Due time.Time
}

// afterAttempt returns the failure of an object after another attempt. Retries have a backoff, which ends when the content changes, or
// something happens that the object waited for.
func (f Failure) afterAttempt(o *apply.Outcome, s Situation, now time.Time) Failure {
	if f.Cond.Reason != o.Cond.Reason || f.Since.IsZero() {
		f.Since = now
	}
	switch {
	case len(o.Diffs) == 0:
		f.FirstSeen = time.Time{}
	case f.FirstSeen.IsZero():
		f.FirstSeen = now
	}
	confirmed := f.Refused != nil && *f.Refused == s.State
	f.Cond, f.Diffs, f.Generation, f.LastSeen, f.Refused = o.Cond, o.Diffs, o.Gen, now, nil
	if o.Err == nil && o.Cond.Reason != api.AppliedWithFailedDriftDetection {
		f.Refused = &s.State
	}
	f.Drift = o.Item != nil && o.Item.Hash != ""
	f.Unknown, f.namespaceMissing = o.Unknown, connection.ForbiddenByNamespace(o.Err)
	f.Recreate = o.Immutable && apply.AsksForRecreation(o.Manifest)
	f.Pending = s.Transient
	first := FirstRetry
	if f.namespaceMissing {
		first = 100 * time.Millisecond // the missing object is just being applied
	}
	f.Next = now.Add(max(f.Backoff.Next(first, LastRetry), connection.RetryAfter(o.Err)))
	switch {
	case o.Transient && deletion.Explains(o.Manifest.ID.GroupKind()):
		f.Next = now.Add(f.Backoff.Next(firstLook, lastLook)) // why it still exists may change
	case !s.Due.IsZero():
		f.Next = s.Due
	case o.SuspendedReason != "" && o.Err == nil && !s.Watched:
		f.Next = now.Add(CompareInterval)
	case f.Refused != nil && s.Watched && !confirmed:
		f.Next = now.Add(confirmation)
	case f.Refused != nil && s.Watched:
		f.Next = now.Add(watchedRetry) // the watch reports any change of it
	}
	return f
}

// The shortest and longest time between two retries of one object.
const (
	FirstRetry = time.Second
	LastRetry  = 5 * time.Minute
	// confirmation is the delay after which an object that was not written is checked once
	// more: two changes of one writer to the same fields within a second cannot be told apart.
	confirmation = 2 * time.Second
	// watchedRetry is the delay of a retry of an object whose watch reports the changes that
	// matter, in case that it fails to.
	watchedRetry = 6 * time.Hour
)

// CompareInterval is how often the objects of placements with the strategy ReportDiff are compared with the cluster. They are polled
// because watches select objects by gitfleet's label, which these do not have.
const CompareInterval = 5 * time.Minute

// The shortest and longest time between two reads of an object that was deleted and still exists.
const (
	firstLook = 5 * time.Second
	lastLook  = 2 * time.Minute
)

// passingFailures is the number of consecutive failures of a deletion before the report shows a
// reason that often passes by itself, such as a conflict. A server that does not answer is
// shown in the status of its cluster instead.
const passingFailures = 3

// lasts reports whether a removal failed for a reason that will not pass by itself.
func lasts(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && code != http.StatusConflict && code != http.StatusTooManyRequests
}

// NotApplied records why an object is not as desired after an attempt, and when it is tried again. It reports whether the error is to
// be logged: the same one is only once in a while.
func (s *State) NotApplied(o *apply.Outcome, at Situation, now time.Time) (log bool) {
	f := s.failed[o.Manifest.ID]
	if f == nil || f.Hash != o.Manifest.Hash {
		f = &Failure{Hash: o.Manifest.Hash}
		s.failed[o.Manifest.ID] = f
	}
	*f = f.afterAttempt(o, at, now)
	return o.Err != nil && o.Do != diff.NeedRead && !f.Recreate && f.logged.Due(o.Cond.Reason+connection.RefusalReason(o.Err))
}

// Fail records another reason why an object is not as desired.
func (s *State) Fail(id api.ID, why Failure) { s.failed[id] = &why }

// Settled records that nothing remains to be done about an object.
func (s *State) Settled(id api.ID) { delete(s.failed, id) }

// NotRemoved records that a removal failed. It is retried with backoff. shown is the error as the report shows it, if it does. It
// reports whether the error is to be logged.
func (s *State) NotRemoved(id api.ID, err, shown error, now time.Time) (log bool) {
	f := s.failed[id]
	if f == nil {
		f = &Failure{Since: now}
		s.failed[id] = f
	}
	f.Next = now.Add(max(f.Backoff.Next(FirstRetry, LastRetry), connection.RetryAfter(err)))
	if lasts(err) || f.Backoff >= passingFailures && !connection.IsUnreachable(err) {
		f.NotDeleted = connection.Cut(shown.Error())
	}
	return f.logged.Due("not removed" + connection.RefusalReason(err))
}

// NotGone records that an object was deleted and still exists, and schedules a read of it. stays is why, according to its conditions;
// nil if those were not read.
func (s *State) NotGone(id api.ID, stays *string, now time.Time) {
	f := s.failed[id]
	if f == nil || f.NotDeleted != "" {
		f = &Failure{Since: now}
		s.failed[id] = f
	} else if stays != nil {
		f.Stays = *stays
	}
	f.Next = now.Add(f.Backoff.Next(firstLook, lastLook))
}

// NotRecreated adds to the condition of a failed object why it is not recreated. news says that reason, which tells whether that is the
// same as before, has changed.
func (s *State) NotRecreated(id api.ID, why, reason string) (cond diff.Condition, news bool) {
	f := s.failed[id]
	f.Cond.Cause = connection.Cut(f.Cond.Cause + "; " + why)
	news, f.notRecreated = f.notRecreated != reason, reason
	return f.Cond, news
}

// LogNotRecreated reports whether it is to be logged that a failed object is not recreated for a reason.
func (s *State) LogNotRecreated(id api.ID, reason string) bool {
	return s.failed[id].logged.Due("not recreated: " + reason)
}

// RetryNow makes the retry of an object due. It reports whether there is one.
func (s *State) RetryNow(id api.ID) bool {
	f := s.failed[id]
	if f != nil {
		f.Next = time.Now() // not zero, since the timer has to be set
	}
	return f != nil
}

// RetrySoon makes the next retry of a failed object due a moment after the last attempt, unless it is due earlier, and returns when.
func (s *State) RetrySoon(id api.ID) time.Time {
	f := s.failed[id]
	f.Next = retry.Earlier(f.Next, f.LastSeen.Add(FirstRetry))
	return f.Next
}

// RetryAll makes the retries of all objects due.
func (s *State) RetryAll() {
	for _, f := range s.failed {
		f.Next = time.Time{}
	}
}

// RetryKinds returns the objects whose kinds are not known and in some groups, which are to be retried at once.
func (s *State) RetryKinds(groups map[string]bool) (ids []api.ID) {
	for id, f := range s.failed {
		if f.KindUnknown() && groups[id.Group] {
			f.Next = time.Time{}
			ids = append(ids, id)
		}
	}
	return ids
}

// RetryNamespace returns the failed objects of a namespace, which are to be retried at once. That retry
// does not increase their backoff, and resets that of objects that waited for the namespace.
func (s *State) RetryNamespace(namespace string) (ids []api.ID) {
	for id, f := range s.failed {
		if id.Namespace == namespace && !f.KindUnknown() {
			if f.Backoff--; f.namespaceMissing || f.Backoff < 0 {
				f.Backoff = 0
			}
			f.Next = time.Now() // not zero, since the timer has to be set
			ids = append(ids, id)
		}
	}
	return ids
}
