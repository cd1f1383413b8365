package member

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

var webID = api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}

// unavailableSession has one Deployment that does not get on, and a Secret.
func unavailableSession(t *testing.T, h http.Handler) (*session, func(health.Health) string) {
	crp := api.PlacementKey{Name: "web"}
	secret := api.ID{Kind: "Secret", Namespace: "web", Name: "token"}
	of := func(id api.ID, o map[string]any) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Content: &unstructured.Unstructured{Object: o}}}
	}
	s := sessionAt(t, h)
	s.setWorks([]*work.Work{{Placement: crp, Manifests: []*work.Manifest{
		of(webID, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		}}),
		of(secret, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "canary-value"}}),
	}}})
	generation := int64(1)
	return s, func(now health.Health) string {
		s.record.objects.Put(webID, &observed.Object{Version: 1, Generation: generation, Health: now})
		state, _ := s.reporter.state(crp, webID)
		return state.Available.Message()
	}
}

// Messages about pods that cannot be created contain no values of Secrets, also of Secrets that
// were added later.
func TestHealthMessagesAreMasked(t *testing.T) {
	s, message := unavailableSession(t, http.NotFoundHandler())
	refused := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated: FailedCreate: https://robot:pa55@x.example.com says canary-value, not another-canary"}
	if got := message(refused); !strings.HasSuffix(got, "https://***@x.example.com says (redacted for security reasons), not another-canary)") {
		t.Errorf("it says %s", got)
	}
	var works []*work.Work
	for _, w := range s.Works() {
		o := map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "another-canary"}}
		id := api.ID{Kind: "Secret", Namespace: "web", Name: "another"}
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Content: &unstructured.Unstructured{Object: o}}})
		works = append(works, w)
	}
	s.setWorks(works)
	if got := message(refused); strings.Contains(got, "canary") {
		t.Errorf("it says %s", got)
	}
}

// A message is cut after the values of Secrets were masked, since half of a value would not be
// found. That holds for objects of any kind, whose controllers may quote Secrets.
func TestSecretsAreMaskedBeforeMessagesAreCut(t *testing.T) {
	s, shown := unavailableSession(t, http.NotFoundHandler())
	for n := range 60 {
		message := "0 of 2 replicas updated: " + strings.Repeat("x", 360+n) + " canary-value and more"
		if got := shown(health.Health{State: health.NotAvailableYet, Message: message}); strings.Contains(got, "cana") || len(got) > 600 {
			t.Fatalf("after %d letters it says %s", 360+n, got)
		}
	}
	widget := api.ID{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "one"}
	if got := s.reporter.unquoted(widget, "the token canary-value is refused"); got != "the token (redacted for security reasons) is refused" {
		t.Errorf("of a custom resource it says %s", got)
	}
}

// The state of a workload ends with what its pods say, and a failure joins what its status and
// its pods say, without secrets.
func TestPodsSayWhyAWorkloadIsNotAvailable(t *testing.T) {
	s, message := unavailableSession(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"items":[{"metadata":{"name":"web-1"},"status":{"containerStatuses":[{"name":"web","state":{"waiting":
			{"reason":"ErrImagePull","message":"token canary-value is refused"}}}]}}]}`)) //nolint:errcheck // the test would see it
	}))
	s.pods = pods.New(s.conn, pods.Config{Cluster: "east", FailureTimeout: time.Millisecond, Wake: s.watch.Changes.Notify, Log: s.cfg.Log})
	defer s.pods.Wait()
	defer s.pods.Stop()
	const why = "pod web-1, container web: ErrImagePull: token (redacted for security reasons) is refused"
	slow := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated", Failure: "ProgressDeadlineExceeded: canary-value has timed out"}
	for !strings.HasSuffix(message(slow), "(0 of 2 replicas updated; "+why+")") {
		select {
		case <-s.watch.Changes.Wake:
			s.observer.recordChanges()
			s.reporter.askWhy(t.Context())
		case <-time.After(time.Minute):
			t.Fatalf("it says %s", message(slow))
		}
	}
	message(slow)
	if state, _ := s.reporter.state(api.PlacementKey{Name: "web"}, webID); state.Failure != "ProgressDeadlineExceeded: (redacted for security reasons) has timed out; "+why {
		t.Errorf("it fails with %q", state.Failure)
	}
}

// Objects that are being deleted are reported, and also which of them wait for the garbage
// collector, since a user may not be able to do anything about that.
func TestReportListsTerminatingObjects(t *testing.T) {
	web, one := api.PlacementKey{Name: "web"}, oneManifest().ID
	tests := map[string]struct {
		finalizers           []string
		going                bool
		lingering, collected []api.ID
	}{
		"it stays":                    {nil, false, nil, nil},
		"something of its own":        {[]string{"example.com/log"}, true, []api.ID{one}, nil},
		"the collector":               {[]string{"foregroundDeletion"}, true, []api.ID{one}, []api.ID{one}},
		"both":                        {[]string{"example.com/log", "foregroundDeletion"}, true, []api.ID{one}, []api.ID{one}},
		"a finalizer, and no removal": {[]string{"foregroundDeletion"}, false, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(oneManifest(), web)
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Namespace: one.Namespace, Finalizers: test.finalizers}}
			if test.going {
				o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			s.record.objects.Put(one, observed.Of(o))
			var reported protocol.WorkSeen
			s.cfg.Report = func(o protocol.Observation) { reported = o.(protocol.WorkSeen) }
			for _, remove := range []bool{true, false} { // the whole placement is removed, or only the object
				s.replaceWorks([]*work.Work{{Placement: web, Remove: remove}})
				s.reporter.report(t.Context(), web)
				if !slices.Equal(reported.Unusual().Lingering, test.lingering) || !slices.Equal(reported.Unusual().Collecting, test.collected) {
					t.Errorf("remove %t: it waits for %v, of these the collector for %v", remove, reported.Unusual().Lingering, reported.Unusual().Collecting)
				}
			}
			s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest()}}})
			if s.reporter.report(t.Context(), web); reported.Unusual().Lingering != nil {
				t.Errorf("it waits for %v, which is wanted", reported.Unusual().Lingering)
			}
		})
	}
}

// The report has each object that is not applied, not available or differs, and says why. An
// object that is applied and available is not in it.
func TestStateOfAnObject(t *testing.T) {
	available := &observed.Object{Version: 1, Generation: 4, Health: health.Health{State: health.Available}}
	slow := &observed.Object{Version: 1, Generation: 4, Health: health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}}
	stuck := &observed.Object{Version: 1, Generation: 4, Health: health.Health{State: health.NotAvailableYet, Failure: "quota exceeded"}}
	failed, differs := diff.ApplyFailed(diff.Apply, errors.New("denied")), diff.Applied()
	tests := map[string]struct {
		work      work.Work
		live      *observed.Object
		failing   *progress.Failure
		held      bool // its deletion by others is held
		exception bool
		applied   bool
		reason    string // of applied
		available bool
		message   string // of available
		failure   string
		pending   bool
	}{
		"as in Git":              {live: available, applied: true, reason: api.ManifestApplied, available: true},
		"not listed yet":         {exception: true, applied: true, reason: api.ManifestApplied, message: "not seen on the cluster yet", pending: true},
		"not available yet":      {live: slow, exception: true, applied: true, reason: api.ManifestApplied, message: "(0 of 2 replicas updated)"},
		"will not be available":  {live: stuck, exception: true, applied: true, reason: api.ManifestApplied, failure: "quota exceeded"},
		"not applied":            {live: available, failing: &progress.Failure{Cond: failed}, exception: true, reason: api.ManifestApplyFailed},
		"not applied, passes":    {live: available, failing: &progress.Failure{Cond: failed, Pending: true}, exception: true, reason: api.ManifestApplyFailed, pending: true},
		"applied, and differs":   {live: available, failing: &progress.Failure{Cond: differs}, exception: true, applied: true, reason: api.ManifestApplied, available: true},
		"only compared":          {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, applied: true, reason: api.ManifestApplied, available: true},
		"compared, and differs":  {work: work.Work{Strategy: api.ApplyStrategy{Type: api.ReportDiff}}, failing: &progress.Failure{Cond: diff.Reported(1, false)}, exception: true, applied: true, reason: api.FoundDiff, available: true},
		"a held deletion":        {held: true, failing: &progress.Failure{Cond: differs}, exception: true, applied: true, reason: api.ManifestApplied, available: true},
		"suspended, unavailable": {work: work.Work{Suspended: "by hand"}, live: slow, exception: true, applied: true, reason: api.Suspended, message: "(0 of 2 replicas updated)"},
		"suspended, available":   {work: work.Work{Suspended: "by hand"}, live: available, applied: true, reason: api.ManifestApplied, available: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, m := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"}), oneManifest()
			test.work.Placement, test.work.Manifests = web, []*work.Manifest{m}
			s.setWorks([]*work.Work{&test.work})
			if test.live != nil {
				s.record.objects.Put(m.ID, test.live)
			}
			if test.failing != nil {
				s.record.progress.Fail(m.ID, *test.failing)
			}
			if test.held {
				s.drifts.state.Loaded(web, protocol.Drift{ID: m.ID, State: api.DriftHeld, Deleted: true})
			}
			o, exception := s.reporter.state(web, m.ID)
			if exception != test.exception || o.Applied.OK != test.applied || o.Applied.Reason != test.reason || o.Pending != test.pending {
				t.Errorf("listed %t, applied %t (%s), pending %t", exception, o.Applied.OK, o.Applied.Reason, o.Pending)
			}
			if o.Applied.OK && o.Available.OK != test.available || o.Failure != test.failure || !strings.HasSuffix(o.Available.Message(), test.message) {
				t.Errorf("available %t (%q), failure %q", o.Available.OK, o.Available.Message(), o.Failure)
			}
		})
	}
}

// Only deletions that failed and are not held are reported as failed.
func TestReportedDeletionErrors(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	s.lists(held(4))
	names := []string{"cm-2", "cm-0", "cm-1", "elsewhere"}
	for _, name := range names {
		s.record.progress.Fail(cm(name), progress.Failure{NotDeleted: "denied"})
	}
	s.record.progress.Fail(cm("cm-3"), progress.Failure{Cond: diff.ApplyFailed(diff.Apply, errors.New("no"))})
	s.blocker.blocked[cm("cm-1")] = blockedDeletion{why: "too many"}
	want := []protocol.DeletionError{{ID: cm("cm-0"), Message: "denied"}, {ID: cm("cm-2"), Message: "denied"}}
	if got := s.reporter.deletionErrors(s.inventory(web).View()); !slices.Equal(got, want) {
		t.Errorf("reported: %v, want %v", got, want)
	}
}

// After an event, the placements of the changed objects are reported, and those that remove
// something.
func TestPlacementsThatAreReported(t *testing.T) {
	s := sessionOf(t, &rest.Config{Host: "https://127.0.0.1:1"})
	key := func(name string) api.PlacementKey { return api.PlacementKey{Name: name} }
	s.setWorks([]*work.Work{
		{Placement: key("changed"), Manifests: []*work.Manifest{oneManifest()}}, {Placement: key("unchanged")},
		{Placement: key("removed"), Remove: true}, {Placement: key("pruned")}, {Placement: key("waiting"), Keep: true},
	})
	s.record.progress.Pruning(key("pruned"))
	s.record.progress.Pruning(key("waiting")) // nothing was released to it yet
	var got []string
	s.cfg.Report = func(o protocol.Observation) { got = append(got, o.(protocol.WorkSeen).Placement.Name) }
	s.reporter.touched(t.Context(), map[api.ID]bool{oneManifest().ID: true})
	slices.Sort(got)
	if want := []string{"changed", "pruned", "removed"}; !slices.Equal(got, want) {
		t.Errorf("reported: %q, want %q", got, want)
	}
	got = nil
	s.reporter.touched(t.Context(), nil)
	if want := []string{"removed"}; !slices.Equal(got, want) {
		t.Errorf("reported again: %q, want %q", got, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	got = nil
	if s.reporter.all(ended); got != nil {
		t.Errorf("reported after the session has ended: %q", got)
	}
}
