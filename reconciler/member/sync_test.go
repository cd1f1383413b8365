package member

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// After a change between applying and reporting differences, the work is not done yet although
// the revision is the same.
func TestChangedStrategyTypeIsNotDone(t *testing.T) {
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	for _, typ := range []api.ApplyStrategyType{api.ReportDiff, api.ServerSideApply, api.ReportDiff} {
		s.setWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if !s.progress.IsUntried(web) {
			t.Errorf("%s counts as done before it was tried", typ)
		}
		s.record.progress.AllTried()
		s.setWorks([]*work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if s.progress.IsUntried(web) {
			t.Errorf("%s does not count as done after it was told again", typ)
		}
	}
}

// Failures are retried once a cluster answers again.
func TestReturnedClusterIsRetriedAtOnce(t *testing.T) {
	for _, returned := range []bool{false, true} {
		s := sessionAt(t, apiserver.NewConfigMaps())
		s.record.progress.Fail(cm("x"), progress.Failure{Next: time.Now().Add(time.Hour)})
		if err := s.probed(t.Context(), probe.Result{Returned: returned}); err != nil {
			t.Fatal(err)
		}
		if again := s.failure(cm("x")).Next.IsZero(); again != returned {
			t.Errorf("returned: %t, tried again: %t", returned, again)
		}
	}
}

// A session ends if the cluster behind its name is another one, or if its credentials are no
// longer valid. Other failed probes do not end it, and what is known of the cluster is kept.
func TestProbesThatEndASession(t *testing.T) {
	failed := errors.New("no answer")
	tests := map[string]struct {
		probe probe.Result
		want  string // the error; empty if the session goes on
	}{
		"it answers":             {probe.Result{UID: "1", Namespaces: []string{"web"}}, ""},
		"it does not answer":     {probe.Result{Err: failed}, ""},
		"another cluster":        {probe.Result{UID: "2"}, "the cluster behind this name is another one now (kube-system UID 2, was 1)"},
		"credentials of another": {probe.Result{Rotation: connection.Rotation{Another: errors.New("another cluster")}}, "another cluster"},
		"unauthorized":           {probe.Result{Err: failed, Unauthorized: true}, "no answer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.health = probe.Result{UID: "1", Namespaces: []string{"web"}}
			err := s.probed(t.Context(), test.probe)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, errReconnect) || !strings.HasSuffix(err.Error(), test.want)) {
				t.Errorf("error: %v, want %q", err, test.want)
			}
			if test.want == "" && (s.health.UID != "1" || !slices.Equal(s.health.Namespaces, []string{"web"})) {
				t.Errorf("known of the cluster: %+v", s.health)
			}
		})
	}
}

// A pass that applies very much waits for its turn among all clusters, until others have ended or have taken long, and others do not.
func TestLargePassesTakeTurns(t *testing.T) {
	for n, waits := range map[int]bool{largePass: true, largePass - 1: false} {
		synctest.Test(t, func(t *testing.T) {
			passes := make(chan struct{}, 1)
			slow := acquireSlot(t.Context(), passes, longPass)
			s := sessionWith(t, Config{Passes: passes, Wrap: func(http.RoundTripper) http.RoundTripper { return noServer{} }}, &rest.Config{Host: "http://127.0.0.1:1"})
			w, ids := &work.Work{Placement: web}, map[api.ID]bool{}
			for i := range n {
				m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "app", "name": strconv.Itoa(i)}})
				w.Manifests = append(w.Manifests, m)
				ids[m.ID] = true
			}
			s.setWorks([]*work.Work{w})
			began, ended := time.Now(), make(chan struct{})
			go func() {
				defer close(ended)
				s.processPrepared(t.Context(), ids)
			}()
			<-ended
			if took := time.Since(began); (took == longPass) != waits {
				t.Errorf("a pass with %d objects took %s", n, took)
			}
			if !s.filled.IsZero() {
				t.Errorf("the connection counts as filled by a pass that has applied none of %d objects", n)
			}
			slow()
			if len(passes) != 0 {
				t.Error("its turn has not ended")
			}
		})
	}
}

// A connection is filled by a pass that has applied many objects.
func TestConnectionsAreFilledByLargePasses(t *testing.T) {
	for n, filled := range map[int]bool{largePass: true, largePass - 1: false} {
		s := memberOf(t, here, apiserver.NewConfigMaps())
		s.cfg.Encoder, s.health.Namespaces = apply.NewEncoder("prod", ""), []string{api.Namespace, "app"}
		s.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
		w, ids := &work.Work{Placement: web}, map[api.ID]bool{}
		for i := range n {
			m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "app", "name": strconv.Itoa(i)}})
			m.Hash = "hash"
			w.Manifests, ids[m.ID] = append(w.Manifests, m), true
		}
		s.setWorks([]*work.Work{w})
		for pass, counts := range []bool{filled, false} { // the second one has nothing to apply
			s.filled = time.Time{}
			if s.processPrepared(t.Context(), ids); s.filled.IsZero() == counts {
				t.Errorf("pass %d with %d objects: filled at %s", pass, n, s.filled)
			}
		}
	}
}

// Some time after a large pass, requests and watches use a new connection, which has small buffers. Until then a retry is due.
func TestConnectionsAreReplacedAfterLargePasses(t *testing.T) {
	for name, test := range map[string]struct {
		filled        time.Time
		replaced, due bool
	}{
		"after a large pass":      {time.Now().Add(-filledDelay), true, false},
		"soon after a large pass": {time.Now().Add(time.Minute), false, true},
		"without a large pass":    {},
	} {
		t.Run(name, func(t *testing.T) {
			from := map[string]bool{}
			s := sessionAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from[r.RemoteAddr] = true }))
			s.filled = test.filled
			for range 2 {
				if err := s.conn.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.retryDue(t.Context())
			}
			if len(from) > 1 != test.replaced {
				t.Errorf("the requests used %d connections", len(from))
			}
			if due := s.retry.Stop(); due != test.due {
				t.Errorf("a retry is due: %t, want %t", due, test.due)
			}
		})
	}
}

// noServer answers no request.
type noServer struct{}

func (noServer) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no server") }
