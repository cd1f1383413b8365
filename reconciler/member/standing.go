package member

import (
	"reflect"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// verifies reports whether an object must be read to know its state, because it is compared in
// full or an autoscaler may scale it.
func (s *session) verifies(w wanted) bool {
	return diff.CompareAfter(s.works[w.placement].Strategy) || scaled(w.manifest, s.live.Of(w.manifest.ID))
}

// unverified reports whether an object must be read, and was not read since others last changed
// it.
func (s *session) unverified(w wanted) bool {
	verified, ok := s.verified[w.manifest.ID]
	return s.verifies(w) && (!ok || verified != s.live.Standing(w.manifest.ID))
}

// waits reports whether a retry of an object is not due yet. If the object was not written
// because of its state, any change may make the retry due, at most once a second.
func (s *session) waits(t *trouble, id api.ID) bool {
	now := time.Now()
	if now.Before(t.next) && t.refused != nil && *t.refused != s.live.Standing(id) {
		t.next = retry.Earlier(t.next, t.last.Add(firstRetry))
	}
	return now.Before(t.next)
}

// reconsider forgets the trouble of the objects of a placement whose strategy has changed.
func (s *session) reconsider(was, now work.Work) {
	s.lookAgain(was, now)
	if reflect.DeepEqual(was.Strategy, now.Strategy) {
		return
	}
	for _, m := range now.Manifests {
		delete(s.trouble, m.ID)
		delete(s.verified, m.ID)
	}
}
