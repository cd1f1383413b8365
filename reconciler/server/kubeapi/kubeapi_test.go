package kubeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

const (
	placementPath = "/apis/placement.kubernetes-fleet.io/v1beta1"
	canary        = "canary-5f1b"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// files are a hub with at least one object of each kind.
var files = fstest.MapFS{
	"apps/web.yaml": {Data: []byte(`apiVersion: v1
kind: Namespace
metadata: {name: web, labels: {team: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: web}
data: {password: Y2FuYXJ5LTVmMWI=}
stringData: {user: canary-5f1b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web, generation: 7}
spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: box, namespace: web}
data:
  login.yaml: {apiVersion: v1, kind: Secret, metadata: {name: other, namespace: web}, stringData: {user: canary-5f1b}}
`)},
	"overrides/web.yaml": {Data: []byte(`apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: login, namespace: web}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Secret, name: login}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      jsonPatchOverrides: [{op: add, path: /stringData/user, value: canary-5f1b}]
`)},
}

func load(t testing.TB, hash string, files fstest.MapFS) *hub.Snapshot {
	t.Helper()
	commit := hub.Commit{Hash: hash, Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	s, err := hub.NewLoader(hub.Options{}).Load(commit, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// crpOf returns a placement as in a report.
func crpOf(name string, generation int64, conditions ...metav1.Condition) *api.ClusterResourcePlacement {
	p := &api.ClusterResourcePlacement{}
	p.APIVersion, p.Kind = api.PlacementGroup+"/v1beta1", "ClusterResourcePlacement"
	p.Name, p.Generation, p.CreationTimestamp = name, generation, metav1.NewTime(time.Now().Add(-5*time.Hour))
	p.Annotations = map[string]string{api.PathAnnotation: "placements/" + name + ".yaml:3"}
	p.Labels = map[string]string{"team": name}
	p.Spec.Policy = &api.PlacementPolicy{PlacementType: api.PickAll}
	p.Spec.Strategy.DeleteStrategy = &api.DeleteStrategy{PropagationPolicy: api.DeletePropagationAbandon}
	p.Status.Conditions = conditions
	return p
}

func reportOf(s *hub.Snapshot, placements ...*api.ClusterResourcePlacement) *status.Report {
	r := &status.Report{InForce: s, Placements: placements}
	r.Source.Git.URL, r.Source.Git.Ref = "https://git.example.com/fleet.git", "main"
	if s != nil {
		r.Source.InForce = s.Commit
	}
	return r
}

// A served is an API that tests access over HTTP.
type served struct {
	t   testing.TB
	api *API
	url string
}

func serve(t testing.TB, r *status.Report) *served {
	t.Helper()
	a, err := New(Config{Store: store.New(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	if r != nil {
		a.Publish(r)
		a.ready.Store(true) // whether or not there is a commit
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	return &served{t, a, srv.URL}
}

func (s *served) ask(method, path, accept, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// get returns the object at a path, which must exist.
func (s *served) get(path string, into any) {
	s.t.Helper()
	code, text := s.ask("GET", path, "application/json", "")
	if code != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s", path, code, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("GET %s: %v in %s", path, err, text)
	}
}

// A version with fewer fields omits the others, and changes nothing else.
func TestV1OmitsFieldsOfV1beta1(t *testing.T) {
	s := serve(t, reportOf(nil, crpOf("web", 3)))
	for version, want := range map[string]bool{"v1beta1": true, "v1": false} {
		var p map[string]any
		s.get("/apis/placement.kubernetes-fleet.io/"+version+"/clusterresourceplacements/web", &p)
		strategy := p["spec"].(map[string]any)["strategy"].(map[string]any)
		if _, found := strategy["deleteStrategy"]; found != want {
			t.Errorf("%s: deleteStrategy: %t", version, found)
		}
		if p["apiVersion"] != "placement.kubernetes-fleet.io/"+version {
			t.Errorf("%s says %s", version, p["apiVersion"])
		}
	}
}

func TestRefusedWritesNameTheFile(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files), crpOf("web", 1)))
	tests := []struct{ method, path, body, want string }{
		{"DELETE", placementPath + "/clusterresourceplacements/web", "", `clusterresourceplacements \"web\" is placements/web.yaml:3`},
		{"PATCH", "/apis/apps/v1/namespaces/web/deployments/web", "{}", `deployments \"web\" is apps/web.yaml:11`},
		{"PUT", "/api/v1/namespaces/web", "{}", `namespaces \"web\" is apps/web.yaml:1`},
		{"POST", placementPath + "/clusterresourceplacements", "metadata: {name: web}", `clusterresourceplacements \"web\" is placements/web.yaml:3`},
		{"POST", placementPath + "/clusterresourceplacements", "metadata: {name: new}", `clusterresourceplacements \"new\" is in no file there (https://git.example.com/fleet.git, main); add one and commit`},
	}
	for _, test := range tests {
		code, text := s.ask(test.method, test.path, "application/json", test.body)
		if code != http.StatusMethodNotAllowed || !strings.Contains(text, test.want) {
			t.Errorf("%s %s: %d %s; want 405 and %s", test.method, test.path, code, text, test.want)
		}
	}
}

func TestSecretValuesAreMasked(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	for _, path := range []string{
		"/api/v1/secrets", "/api/v1/namespaces/web/secrets/login", placementPath + "/resourceenvelopes",
		placementPath + "/resourceoverrides", "/api/v1/secrets?watch=1&timeoutSeconds=1",
	} {
		for _, accept := range []string{"application/json", "application/yaml"} {
			if accept == "application/yaml" && strings.Contains(path, "watch") {
				continue // Kubernetes has no such field
			}
			code, text := s.ask("GET", path, accept, "")
			if code != http.StatusOK || !strings.Contains(text, "login") {
				t.Errorf("%s: %d %s", path, code, text)
			}
			if strings.Contains(text, canary) || strings.Contains(text, "Y2FuYXJ5LTVmMWI=") {
				t.Errorf("%s tells a secret: %s", path, text)
			}
		}
	}
}

// declaring returns the report for a commit by a daemon with a ledger.
func declaring(l *ledger.Ledger, s *hub.Snapshot) *status.Report {
	l.Declare(s.Commit.Hash, s.Commit.Time, func(yield func(api.ID, ledger.DeclaredHashes) bool) {
		for _, o := range s.Objects {
			yield(o.ID, ledger.DeclaredHashes{Hash: o.Hash})
		}
		for _, o := range s.Overrides {
			yield(api.ID{Group: api.PlacementGroup, Kind: "ResourceOverride", Namespace: o.Namespace, Name: o.Name}, ledger.DeclaredHashes{Hash: o.Hash, Spec: o.SpecHash})
		}
	})
	r := reportOf(s)
	r.Declared = l.Declared()
	return r
}

// Every object has the metadata that Kubernetes clients expect, also after a restart of the
// daemon.
func TestObjectsHaveMetadata(t *testing.T) {
	l := ledger.New()
	s := serve(t, declaring(l, load(t, "c1", files)))
	var d, override metav1.PartialObjectMetadata
	s.get("/apis/apps/v1/namespaces/web/deployments/web", &d)
	s.get(placementPath+"/namespaces/web/resourceoverrides/login", &override)
	if override.UID == "" || override.Generation != 1 || override.Annotations[api.CommitAnnotation] != "c1" || override.Annotations[api.PathAnnotation] != "overrides/web.yaml:1" ||
		!override.CreationTimestamp.Equal(&d.CreationTimestamp) {
		t.Errorf("metadata of an override: %+v", override)
	}
	if d.UID == "" || d.ResourceVersion == "" || d.Generation != 1 || d.Annotations[api.CommitAnnotation] != "c1" ||
		d.Annotations[api.PathAnnotation] != "apps/web.yaml:11" || !d.CreationTimestamp.Equal(&metav1.Time{Time: s.api.head.Commit.Time}) {
		t.Errorf("metadata: %+v", d)
	}
	changed := fstest.MapFS{}
	for name, file := range files {
		changed[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(file.Data), "replicas: 2", "replicas: 3"))}
	}
	s.api.Publish(declaring(l, load(t, "c2", changed)))
	var after, namespace, again metav1.PartialObjectMetadata
	s.get("/apis/apps/v1/namespaces/web/deployments/web", &after)
	s.get("/api/v1/namespaces/web", &namespace)
	serve(t, declaring(l, load(t, "c2", changed))).get("/apis/apps/v1/namespaces/web/deployments/web", &again)
	if again.ResourceVersion = after.ResourceVersion; !reflect.DeepEqual(again, after) {
		t.Errorf("metadata after a restart: %+v\nbefore: %+v", again, after)
	}
	if after.UID != d.UID || after.Generation != 2 || after.ResourceVersion <= d.ResourceVersion || after.Annotations[api.CommitAnnotation] != "c2" {
		t.Errorf("metadata after a change: %+v", after)
	}
	if namespace.Generation != 1 || namespace.Annotations[api.CommitAnnotation] != "c1" {
		t.Errorf("metadata of what did not change: %+v", namespace)
	}
}

// A kind that is no longer in the commit disappears from discovery, and a new one appears.
func TestDiscoveryFollowsTheCommit(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	var apps metav1.APIResourceList
	s.get("/apis/apps/v1", &apps)
	if len(apps.APIResources) != 1 || apps.APIResources[0].Name != "deployments" || apps.APIResources[0].ShortNames[0] != "deploy" {
		t.Errorf("apps/v1: %+v", apps)
	}
	s.api.Publish(reportOf(load(t, "c2", fstest.MapFS{})))
	if code, text := s.ask("GET", "/apis/apps/v1", "application/json", ""); code != http.StatusNotFound {
		t.Errorf("apps/v1 after its last manifest has gone: %d %s", code, text)
	}
	if code, text := s.ask("GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""); code != http.StatusOK || strings.Contains(text, "deployments") || !strings.Contains(text, "memberclusters") {
		t.Errorf("discovery: %d %s", code, text)
	}
}

// Clients that sort by a field, or have tables of their own, can request tables that contain
// the objects.
func TestTablesCanContainObjects(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files), crpOf("web", 3)))
	for _, path := range []string{placementPath + "/clusterresourceplacements", "/apis/apps/v1/namespaces/web/deployments/web"} {
		code, text := s.ask("GET", path+"?includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io", "")
		var table struct {
			Rows []struct {
				Object struct {
					Kind     string
					Metadata metav1.ObjectMeta
					Spec     map[string]any
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &table); err != nil || code != http.StatusOK || len(table.Rows) != 1 {
			t.Fatalf("%s: %d %v %s", path, code, err, text)
		}
		if o := table.Rows[0].Object; o.Kind == "" || o.Metadata.Name != "web" || o.Metadata.ResourceVersion == "" || len(o.Spec) == 0 {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// An event on a cluster names the cluster.
func TestEventsNameTheirCluster(t *testing.T) {
	for want, e := range map[string]status.Event{
		"all is well":                 {Kind: "ClusterResourcePlacement", Message: "all is well"},
		"east: all is well":           {Kind: "ClusterResourcePlacement", Cluster: "east", Message: "all is well"},
		`scheduled to "east"`:         {Kind: "ClusterResourcePlacement", Cluster: "east", Reason: api.ScheduledReason, Message: `scheduled to "east"`},
		"the cluster does not answer": {Kind: "MemberCluster", Cluster: "east", Message: "the cluster does not answer"},
	} {
		if got := eventMessage(&e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Before there is a commit, no empty list is served, since a client would consider all known
// objects deleted.
func TestNoListsBeforeTheFirstCommit(t *testing.T) {
	s := serve(t, nil)
	for _, r := range []*status.Report{reportOf(nil), reportOf(load(t, "c1", files), crpOf("web", 1))} {
		s.api.Publish(r)
		for path, waits := range map[string]bool{
			placementPath + "/clusterresourceplacements": true, placementPath + "/clusterresourceplacements/web": true, "/api/v1/events": false, "/apis": false,
		} {
			want := http.StatusOK
			if waits && r.InForce == nil {
				want = http.StatusServiceUnavailable
			}
			if code, text := s.ask("GET", path, "application/json", ""); code != want || strings.Contains(text, "no commit is in force yet") != (want == http.StatusServiceUnavailable) {
				t.Errorf("%s: %d, want %d: %s", path, code, want, text)
			}
		}
	}
}

func TestSelectors(t *testing.T) {
	s := serve(t, reportOf(nil, crpOf("api", 1), crpOf("web", 1)))
	for query, want := range map[string]string{
		"": "api web", "labelSelector=team%3Dweb": "web", "labelSelector=team!%3Dweb": "api", "fieldSelector=metadata.name%3Dapi": "api", "limit=1": "api",
	} {
		var l metav1.PartialObjectMetadataList
		s.get(placementPath+"/clusterresourceplacements?"+query, &l)
		var names []string
		for _, o := range l.Items {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if query == "limit=1" {
			var second metav1.PartialObjectMetadataList
			s.get(placementPath+"/clusterresourceplacements?limit=1&continue="+l.Continue, &second)
			if len(second.Items) != 1 || second.Items[0].Name != "web" || second.Continue != "" {
				t.Errorf("the second page: %+v", second)
			}
		}
	}
	if code, text := s.ask("GET", placementPath+"/clusterresourceplacements?fieldSelector=spec.x%3Dy", "application/json", ""); code != http.StatusBadRequest || !strings.Contains(text, "metadata.name") {
		t.Errorf("a field that nothing is selected by: %d %s", code, text)
	}
}
