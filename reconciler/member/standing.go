package member

import (
	"hash/fnv"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// A standing is the ownership state of an object: if it changes, others have changed something.
type standing struct {
	uid     types.UID
	managed string
	others  uint64
	owned   bool
}

// standing returns the ownership state of a live object; zero if it does not exist.
func (s *session) standing(id api.ID) standing {
	l := s.live.of(id)
	if l == nil {
		return standing{}
	}
	return standing{uid: l.uid, managed: l.managed, others: l.others, owned: l.owned}
}

// othersOf returns a hash of what others own of an object, except its status.
func othersOf(entries []metav1.ManagedFieldsEntry) uint64 {
	sum := fnv.New64a()
	for i := range entries {
		e := &entries[i]
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply || e.Subresource == "status" {
			continue
		}
		sum.Write([]byte(e.Manager + "\x00" + string(e.Operation) + "\x00"))
		if e.Time != nil {
			sum.Write([]byte(e.Time.UTC().Format(time.RFC3339)))
		}
		if e.FieldsV1 != nil {
			sum.Write(diff.CanonicalFields(e.FieldsV1))
		}
	}
	return sum.Sum64()
}

// verifies reports whether an object must be read to know its state: because it is compared in
// full, or an autoscaler may scale it.
func (s *session) verifies(w wanted) bool {
	return diff.CompareAfter(s.works[w.placement].Strategy) || s.scaled(w)
}

// unverified reports whether an object must be read, and was not since others last changed it.
func (s *session) unverified(w wanted) bool {
	verified, ok := s.verified[w.manifest.ID]
	return s.verifies(w) && (!ok || verified != s.standing(w.manifest.ID))
}

// waits reports whether a retry of an object is not due yet. If the object was left alone
// because of its state, any change may make the retry due, at most once a second.
func (s *session) waits(t *trouble, id api.ID) bool {
	now := time.Now()
	if now.Before(t.next) && t.refused != nil && *t.refused != s.standing(id) {
		t.next = earlier(t.next, t.last.Add(firstRetry))
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
