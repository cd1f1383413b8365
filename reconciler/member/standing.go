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

// A standing is how an object stands, as far as others can change it: if it is
// another one, somebody did something.
type standing struct {
	uid     types.UID
	managed string
	others  uint64
	owned   bool
}

// standing returns that of a live object; zero if there is none.
func (s *session) standing(id api.ID) standing {
	l := s.live.of(id)
	if l == nil {
		return standing{}
	}
	return standing{uid: l.uid, managed: l.managed, others: l.others, owned: l.owned}
}

// othersOf sums up what everybody else owns of an object, but for its status.
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

// verifies reports whether an object needs to be read to tell how it stands:
// because it is compared in full, or an autoscaler may scale it.
func (s *session) verifies(w wanted) bool {
	return diff.CompareAfter(s.works[w.placement].Strategy) || s.scaled(w)
}

// unverified reports whether an object has to be read, and was not since others
// last changed anything about it.
func (s *session) unverified(w wanted) bool {
	verified, ok := s.verified[w.manifest.ID]
	return s.verifies(w) && (!ok || verified != s.standing(w.manifest.ID))
}

// waits reports whether it is not time yet to try an object again. Where it was
// left alone because of what it is, any change of it may be the end of that; but
// it is looked at no more than once a second.
func (s *session) waits(t *trouble, id api.ID) bool {
	now := time.Now()
	if now.Before(t.next) && t.refused != nil && *t.refused != s.standing(id) {
		t.next = earlier(t.next, t.last.Add(firstRetry))
	}
	return now.Before(t.next)
}

// reconsider forgets why objects of a placement are not as they should be, if
// another strategy now decides about them.
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
