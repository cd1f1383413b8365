package member

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object that was not applied because the cluster did not respond is not reported as failed,
// and its condition does not say that the API server has refused it.
func TestUnreachableClusterIsNoFailureOfAnObject(t *testing.T) {
	strategies := map[string]api.ApplyStrategy{
		"written at once": {WhenToTakeOver: api.TakeOverAlways},
		"found missing":   {WhenToTakeOver: api.TakeOverIfNoDiff},
		"only compared":   {Type: api.ReportDiff},
	}
	servers := map[string]struct {
		session func(t *testing.T) *session
		want    string
		failed  bool
	}{
		"closed port": {
			func(t *testing.T) *session { return sessionOf(t, &rest.Config{Host: "http://127.0.0.1:1"}) },
			"the cluster is unreachable: dial tcp 127.0.0.1:1: connect: connection refused", false,
		},
		"broken connection": {
			func(t *testing.T) *session {
				return sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet { // a read is retried for seconds
						apiserver.Refuse(w, http.StatusNotFound, "not found")
						return
					}
					panic(http.ErrAbortHandler)
				}))
			},
			"the cluster is unreachable: the connection was closed before the answer was complete", false,
		},
		"no answer any more": {
			func(t *testing.T) *session {
				s := sessionAt(t, apiserver.NewConfigMaps())
				for !s.conn.CutOff() {
					s.conn.RecordResult(errors.New("no answer")) //nolint:errcheck // it is counted
				}
				return s
			},
			"the cluster is unreachable: the API server has stopped answering", false,
		},
		"refused": {
			func(t *testing.T) *session {
				return sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { apiserver.Refuse(w, http.StatusForbidden, "not for you") }))
			},
			"not for you", true,
		},
	}
	for server, test := range servers {
		for strategy, how := range strategies {
			if server == "broken connection" && how.Type == api.ReportDiff {
				continue // for an object that does not exist, no further request is sent
			}
			t.Run(server+", "+strategy, func(t *testing.T) {
				s, m := test.session(t), oneManifest()
				s.cfg.Encoder = NewEncoder("prod", "")
				s.trouble, s.verified, s.done = map[api.ID]*trouble{}, map[api.ID]observed.Standing{}, map[api.PlacementKey]bool{web: true}
				s.want([]work.Work{{Placement: web, Strategy: how, Manifests: []*work.Manifest{m}}})
				it := inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}
				s.inventory(web).Items.Put(it)
				s.applier.apply(t.Context(), []task{{wanted: wanted{web, m}, res: inventory.ConfigMaps, item: &it, found: &finding{}}}, map[api.PlacementKey]bool{})

				var told ledger.WorkSeen
				s.cfg.Report = func(o ledger.Observation) { told = o.(ledger.WorkSeen) }
				s.reporter.report(t.Context(), web)
				if len(told.Exceptions) != 1 {
					t.Fatalf("the report has %+v", told.Exceptions)
				}
				o := told.Exceptions[0]
				if !strings.Contains(o.Applied.Message, test.want) || !test.failed && strings.Contains(o.Applied.Message, "returned by the API server") {
					t.Errorf("it says %q, want %q", o.Applied.Message, test.want)
				}
				if o.HasFailed() != test.failed {
					t.Errorf("it has failed: %t", o.HasFailed())
				}
			})
		}
	}
}
