package member

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/pods"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

var webID = api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}

// unavailableSession has one Deployment that does not get on, and a Secret.
func unavailableSession(t *testing.T, h http.Handler) (*session, func(health.Health) string) {
	crp := api.PlacementKey{Name: "web"}
	secret := api.ID{Kind: "Secret", Namespace: "web", Name: "token"}
	of := func(id api.ID, o map[string]any) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Object: &unstructured.Unstructured{Object: o}}}
	}
	s := sessionAt(t, h)
	s.want([]work.Work{{Placement: crp, Manifests: []*work.Manifest{
		of(webID, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		}}),
		of(secret, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "canary-value"}}),
	}}})
	generation := int64(1)
	return s, func(now health.Health) string {
		s.live.Put(webID, &observed.Object{Version: 1, Generation: generation, Health: now})
		state, _ := s.reporter.state(crp, webID)
		return state.Available.Message
	}
}

// What keeps pods from being made is told without secrets too, also those that come
// later.
func TestHealthMessagesAreMasked(t *testing.T) {
	s, told := unavailableSession(t, http.NotFoundHandler())
	refused := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated: FailedCreate: https://robot:pa55@x.example.com says canary-value, not another-canary"}
	if got := told(refused); !strings.HasSuffix(got, "https://***@x.example.com says (redacted for security reasons), not another-canary)") {
		t.Errorf("it says %s", got)
	}
	var works []work.Work
	for _, w := range s.works {
		o := map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "another-canary"}}
		id := api.ID{Kind: "Secret", Namespace: "web", Name: "another"}
		w.Manifests = append(w.Manifests, &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Object: &unstructured.Unstructured{Object: o}}})
		works = append(works, w)
	}
	s.want(works)
	if got := told(refused); strings.Contains(got, "canary") {
		t.Errorf("it says %s", got)
	}
}

// What is cut off is cut off after Secrets were masked: half of one would not be
// found. And it is told of no kind what its controller quotes of them.
func TestSecretsAreMaskedBeforeMessagesAreCut(t *testing.T) {
	s, told := unavailableSession(t, http.NotFoundHandler())
	for n := range 60 {
		message := "0 of 2 replicas updated: " + strings.Repeat("x", 360+n) + " canary-value and more"
		if got := told(health.Health{State: health.NotAvailableYet, Message: message}); strings.Contains(got, "cana") || len(got) > 600 {
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
	s, told := unavailableSession(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"items":[{"metadata":{"name":"web-1"},"status":{"containerStatuses":[{"name":"web","state":{"waiting":
			{"reason":"ErrImagePull","message":"token canary-value is refused"}}}]}}]}`)) //nolint:errcheck // the test would see it
	}))
	s.pods = pods.New(s.conn, pods.Config{Cluster: "east", FailureTimeout: time.Millisecond, Wake: s.watch.Changes.Nudge, Log: s.cfg.Log})
	defer s.pods.Wait()
	defer s.pods.Stop()
	const why = "pod web-1, container web: ErrImagePull: token (redacted for security reasons) is refused"
	slow := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated", Failure: "ProgressDeadlineExceeded: canary-value has timed out"}
	for !strings.HasSuffix(told(slow), "(0 of 2 replicas updated; "+why+")") {
		select {
		case <-s.watch.Changes.Wake:
			s.observer.absorb()
			s.reporter.askWhy(t.Context())
		case <-time.After(time.Minute):
			t.Fatalf("it says %s", told(slow))
		}
	}
	told(slow)
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
			s.live.Put(one, observed.Of(o))
			var told ledger.WorkSeen
			s.cfg.Report = func(o ledger.Observation) { told = o.(ledger.WorkSeen) }
			for _, remove := range []bool{true, false} { // the whole placement is removed, or only the object
				s.works[web] = work.Work{Placement: web, Remove: remove}
				s.reporter.report(t.Context(), web)
				if !slices.Equal(told.Lingering, test.lingering) || !slices.Equal(told.Collecting, test.collected) {
					t.Errorf("remove %t: it waits for %v, of these the collector for %v", remove, told.Lingering, told.Collecting)
				}
			}
			s.want([]work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest()}}})
			if s.reporter.report(t.Context(), web); told.Lingering != nil {
				t.Errorf("it waits for %v, which is wanted", told.Lingering)
			}
		})
	}
}
