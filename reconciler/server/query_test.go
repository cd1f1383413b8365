package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

const fleet = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: east}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: west}
---
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  policy: {placementType: PickFixed, clusterNames: [east]}
`

func report(t *testing.T) *status.Report {
	t.Helper()
	head, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c0ffee"}, fstest.MapFS{"fleet.yaml": {Data: []byte(fleet)}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	l := ledger.New()
	for _, c := range head.Clusters {
		l.Fold(protocol.ClusterSeen{Cluster: c.Name, At: now, Healthy: true})
	}
	p := plan.Resolve(plan.Input{InForce: head, Ledger: l, Now: now, Memo: plan.NewMemo()})
	return status.Build(status.Input{Plan: p, InForce: head, Ledger: l, Now: now})
}

func ask(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestExplainUsesTheNewestReport(t *testing.T) {
	s := New(nil)
	s.Publish(report(t))
	tests := map[string]struct {
		query    string
		clusters []string
	}{
		"all":    {"?placement=crp/web", []string{"east", "west"}},
		"one":    {"?placement=crp/web&cluster=west", []string{"west"}},
		"quoted": {"?placement=crp%2Fweb&cluster=east", []string{"east"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := ask(s, "/explain"+test.query)
			var e status.Explanation
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %v: %s", w.Code, err, w.Body)
			}
			var got []string
			for _, c := range e.Clusters {
				got = append(got, c.Cluster)
			}
			if strings.Join(got, " ") != strings.Join(test.clusters, " ") || e.Commit != "c0ffee" || e.APIVersion != status.ExplainVersion {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}

func TestExplainErrors(t *testing.T) {
	empty, full := New(nil), New(nil)
	full.Publish(report(t))
	tests := map[string]struct {
		s    *Server
		path string
		code int
		text string
	}{
		"starting":          {empty, "/explain?placement=crp/web", 503, "no report yet"},
		"nothing asked":     {full, "/explain", 400, "placement: missing"},
		"unknown placement": {full, "/explain?placement=crp/wbe", 404, "there is no placement crp/wbe; did you mean crp/web?"},
		"unknown cluster":   {full, "/explain?placement=crp/web&cluster=moon", 404, "there is no cluster moon; there are east, west"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if w := ask(test.s, test.path); w.Code != test.code || !strings.Contains(w.Body.String(), test.text) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

// Shell completion gets all names, and nothing else.
func TestNames(t *testing.T) {
	s := New(nil)
	if got := ask(s, "/names").Body.String(); got != `{"placements":[],"clusters":[]}`+"\n" {
		t.Errorf("at the start: %s", got)
	}
	s.Publish(report(t))
	if got := ask(s, "/names").Body.String(); got != `{"placements":["crp/web"],"clusters":["east","west"]}`+"\n" {
		t.Errorf("got %s", got)
	}
}

// A part of the report has a version and can be waited for, like the whole report.
func TestMountReport(t *testing.T) {
	s := New(nil)
	s.MountReport("GET /part", func(r *status.Report) any { return len(r.Details) })
	s.Publish(report(t))
	w := ask(s, "/part?after=0")
	if w.Body.String() != "1\n" || w.Header().Get(NumberHeader) != "1" {
		t.Errorf("got %s %s", w.Header(), w.Body)
	}
}

// A single placement or cluster can be requested, with everything that belongs to it.
func TestReportOfOnePlacementOrCluster(t *testing.T) {
	s := New(nil)
	whole := report(t)
	for _, x := range []status.Suspension{
		{Placement: "crp/web"}, {Placement: "crp/other"}, {Cluster: "east"}, {Cluster: "west"}, {Placement: "crp/web", Cluster: "west"}, {},
	} {
		x.Subject = x.Placement + " on " + x.Cluster
		whole.Suspensions = append(whole.Suspensions, x)
	}
	s.Publish(whole)
	var r status.Report
	w := ask(s, "/report?placement=crp/web")
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || len(r.Placements) != 1 || len(r.Clusters) != 1 || r.Clusters[0].Name != "east" {
		t.Errorf("%v: %s", err, w.Body)
	}
	var suspended []string
	for _, x := range r.Suspensions {
		suspended = append(suspended, x.Subject)
	}
	if want := []string{"crp/web on ", " on east", " on "}; !slices.Equal(suspended, want) {
		t.Errorf("suspended: %q, want %q", suspended, want)
	}
	r = status.Report{}
	w = ask(s, "/report?cluster=west")
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || len(r.Placements)+len(r.Details) != 0 || len(r.Clusters) != 1 || r.Clusters[0].Name != "west" || len(r.Suspensions) != 2 {
		t.Errorf("%v: %s", err, w.Body)
	}
	r = status.Report{}
	w = ask(s, "/report?cluster=east")
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || len(r.Placements) != 1 || len(r.Details) != 1 || len(r.Details[0].Clusters) != 1 || len(r.Suspensions) != 3 {
		t.Errorf("%v: %s", err, w.Body)
	}
	if w := ask(s, "/report?placement=crp/web&cluster=east"); w.Code != http.StatusBadRequest {
		t.Errorf("a placement and a cluster: %d", w.Code)
	}
	if w := ask(s, "/report?cluster=weast"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "there is no cluster weast") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if w := ask(s, "/report?placement=crp/wbe"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "did you mean crp/web?") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
