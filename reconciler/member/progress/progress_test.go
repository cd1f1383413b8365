package progress

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An event of a namespace makes failed objects in it be retried, without delaying the later
// retries.
func TestNamespaceEventsDoNotIncreaseTheBackoff(t *testing.T) {
	for name, test := range map[string]struct {
		was  Failure
		want retry.Backoff
	}{
		"waited for the namespace": {Failure{namespaceMissing: true, Backoff: 7}, 0},
		"failed otherwise":         {Failure{Backoff: 7}, 6},
		"never counted":            {Failure{}, 0},
	} {
		s, id := New(), configMap("x")
		s.Fail(id, test.was)
		s.RetryNamespace("app")
		if f, _ := s.View().Failure(id); f.Backoff != test.want {
			t.Errorf("%s: %d failures are counted, want %d", name, f.Backoff, test.want)
		}
	}
}

// The state of an object is forgotten, so that it is tried again, if the strategy of its placement
// changes or its suspension begins or ends. A recreation is tried again once a commit allows it.
func TestReconsideredObjects(t *testing.T) {
	m := &work.Manifest{Object: &api.Object{ID: configMap("one")}}
	suspended := []work.SuspendedObject{{ID: m.ID, Why: "by hand"}}
	tests := map[string]struct {
		was, now  work.Work
		recreate  bool
		forgotten bool
		suspect   bool // its values are compared
		due       bool
	}{
		"unchanged":                  {},
		"another strategy":           {now: work.Work{Strategy: api.ApplyStrategy{WhenToApply: api.ApplyIfNotDrifted}}, forgotten: true},
		"suspended":                  {now: work.Work{Suspended: "by hand"}, forgotten: true},
		"the object is suspended":    {now: work.Work{SuspendedObjects: suspended}, forgotten: true},
		"suspended for another":      {was: work.Work{Suspended: "by hand"}, now: work.Work{Suspended: "for an upgrade"}, forgotten: true},
		"resumed":                    {was: work.Work{Suspended: "by hand"}, forgotten: true, suspect: true},
		"the object is resumed":      {was: work.Work{SuspendedObjects: suspended}, forgotten: true, suspect: true},
		"a commit allows deletions":  {now: work.Work{AllowDelete: true}},
		"it allows its recreation":   {now: work.Work{AllowDelete: true}, recreate: true, due: true},
		"it was allowed before":      {was: work.Work{AllowDelete: true}, now: work.Work{AllowDelete: true}, recreate: true},
		"another revision":           {now: work.Work{Revision: placement.Revision{Commit: "c2", Hash: "2"}}},
		"another reason of deletion": {now: work.Work{Cause: work.Cause{Why: "gone"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			later := time.Now().Add(time.Hour)
			s := New()
			s.Fail(m.ID, Failure{Next: later, Recreate: test.recreate})
			s.Verified(m.ID, observed.OwnershipState{})
			test.now.Manifests = []*work.Manifest{m}
			s.WorkChanged(&test.was, &test.now)
			f, failed := s.View().Failure(m.ID)
			if verified := s.View().IsVerified(m.ID, observed.OwnershipState{}); failed == test.forgotten || verified == test.forgotten {
				t.Errorf("failed: %t, verified: %t", failed, verified)
			}
			if s.View().IsSuspect(m.ID) != test.suspect {
				t.Errorf("its values are compared: %t", s.View().IsSuspect(m.ID))
			}
			if failed && f.Next.IsZero() != test.due {
				t.Errorf("the retry is due at %s", f.Next)
			}
		})
	}
}

// Objects whose last change is not processed yet stay suspects, since it is not known yet what
// state they are in.
func TestSuspectsWaitForTheirChange(t *testing.T) {
	s := New()
	processed, unprocessed := configMap("one"), configMap("two")
	s.Suspect(processed, unprocessed)
	s.Postpone(map[api.ID]bool{unprocessed: true})
	if taken := s.TakeSuspects(); !slices.Equal(taken, []api.ID{processed}) || s.View().IsSuspect(processed) || !s.View().IsSuspect(unprocessed) {
		t.Errorf("taken: %v; the one that is not processed is a suspect: %t", taken, s.View().IsSuspect(unprocessed))
	}
	s.TakeUnprocessed()
	if taken := s.TakeSuspects(); len(taken) != 1 || s.View().HasSuspects() {
		t.Error("it stays a suspect once its change is processed")
	}
}

// A removal that the server refuses fails again until somebody acts; a conflict, a rate limit, a
// server error or no response may pass.
func TestLastingFailures(t *testing.T) {
	for code, want := range map[int]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusUnprocessableEntity: true,
		http.StatusConflict: false, http.StatusTooManyRequests: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		if got := lasts(apiserver.Refusal(code, "no")); got != want {
			t.Errorf("%d lasts: %t", code, got)
		}
	}
	if lasts(connection.Unreachable(errors.New("refused"))) {
		t.Error("no response lasts")
	}
}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }
