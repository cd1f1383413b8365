package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// are are conditions of some types; a type that begins with ! is false.
func are(types ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, typ := range types {
		c := metav1.Condition{Type: strings.TrimPrefix(typ, "!"), Status: metav1.ConditionTrue, Reason: "Because", Message: "all is well", LastTransitionTime: ago(time.Hour)}
		if strings.HasPrefix(typ, "!") {
			c.Status, c.Message = metav1.ConditionFalse, c.Type+" is not true yet"
		}
		out = append(out, c)
	}
	return out
}

// told is a report with a bit of everything.
func told() *status.Report {
	web := &api.ClusterResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3, CreationTimestamp: ago(50 * time.Hour)},
		Spec:       api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: new(int32(3))}},
		Status: api.PlacementStatus{
			ObservedResourceIndex: "7", Conditions: are("ClusterResourcePlacementScheduled", "!ClusterResourcePlacementApplied"),
			PlacementStatuses: []api.PerClusterPlacementStatus{
				{ClusterName: "east", Conditions: are(api.Scheduled, api.Applied, api.Available)},
				{ClusterName: "west", Conditions: are(api.Scheduled, "!"+api.Applied), FailedPlacements: []api.FailedResourcePlacement{{
					ResourceIdentifier: api.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
					Condition:          metav1.Condition{Type: api.Applied, Status: metav1.ConditionFalse, Reason: api.NotTakenOver, Message: "somebody else's"},
				}}},
				{Conditions: are("!" + api.Scheduled)},
			},
		},
	}
	idle := &api.ClusterResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Name: "idle", Generation: 1},
	}
	db := &api.ResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", Generation: 1, CreationTimestamp: ago(90 * time.Second)},
		Spec:       api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickFixed, ClusterNames: []string{"east"}}},
		Status: api.PlacementStatus{
			ObservedResourceIndex: "0", Conditions: are("ResourcePlacementScheduled"),
			PlacementStatuses: []api.PerClusterPlacementStatus{{ClusterName: "east", Conditions: are(api.Scheduled, api.Applied, "!"+api.Available)}},
		},
	}
	east := &api.MemberCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.kubernetes-fleet.io/v1beta1", Kind: "MemberCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu", "env": "prod", api.MemberNameLabel: "east"}},
		Status: api.MemberClusterStatus{
			Conditions:    are(api.Joined),
			Properties:    map[string]api.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.35.2"}},
			ResourceUsage: api.ResourceUsage{Available: api.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("7Gi")}},
			AgentStatus:   []api.AgentStatus{{Type: api.MemberAgent, Conditions: are(api.Healthy), LastReceivedHeartbeat: ago(4 * time.Second)}},
		},
	}
	west := &api.MemberCluster{
		TypeMeta:   east.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: "west"},
		Status: api.MemberClusterStatus{
			Conditions:  are("!" + api.Joined),
			AgentStatus: []api.AgentStatus{{Type: api.MemberAgent, Conditions: are("!" + api.Healthy), LastReceivedHeartbeat: ago(3 * time.Hour)}},
		},
	}
	return &status.Report{
		At:         noon,
		Source:     status.Source{InForce: hub.Commit{Hash: "0123456789abcdef"}, Newest: hub.Commit{Hash: "0123456789abcdef"}},
		Placements: []*api.ClusterResourcePlacement{idle, web}, ResourcePlacements: []*api.ResourcePlacement{db},
		Clusters: []*api.MemberCluster{east, west},
		Details: []*status.Detail{
			{Placement: "crp/idle"},
			{Placement: "crp/web", Clusters: []status.ClusterDetail{{Cluster: "east", Commit: "0123456789abcdef"}, {Cluster: "west", Commit: "fedcba9876543210"}}},
			{Placement: "rp/team/db", Clusters: []status.ClusterDetail{{Cluster: "east", Commit: "0123456789abcdef"}}},
		},
	}
}

// listening is a daemon that has told reports, and where it answers.
func listening(t *testing.T, reports ...*status.Report) (*server.Server, string) {
	t.Helper()
	daemon := server.New(nil)
	tellOverview(daemon, nil, nil)
	for _, r := range reports {
		daemon.Publish(r)
	}
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	return daemon, srv.URL
}

// What get prints is what its users read, and their scripts: it changes on
// purpose only.
func TestGet(t *testing.T) {
	_, address := listening(t, told())
	refused := told()
	refused.Source.Newest.Hash = "badc0ffee0ddf00d"
	refused.Source.Problems = hub.Problems{{Origin: api.Origin{Path: "apps/web.yaml", Line: 3}, Field: "spec.replicas", Message: "must be a number"}}
	refused.Source.LoadError = "the commit would delete everything"
	refused.Source.Git = status.Git{URL: "https://git.example.com/fleet", Failures: 4, LastSuccess: noon.Add(-time.Hour), Error: "connection refused"}
	refused.Details[1].Clusters[0].Braked = []string{"ConfigMap/web/one: too much", "ConfigMap/web/two: too much"}
	_, troubled := listening(t, refused)
	_, empty := listening(t, &status.Report{At: noon})
	_, starting := listening(t, &status.Report{At: noon, Source: status.Source{Newest: hub.Commit{Hash: "badc0ffee0ddf00d"}, LoadError: "no such path"}})
	tests := map[string]struct {
		args    string
		address string
	}{
		"crp":              {"crp", address},
		"crp-wide":         {"crp -o wide", address},
		"crp-json":         {"crp -o json", address},
		"crp-yaml":         {"crp -o yaml", address},
		"crp-one":          {"crp web", address},
		"crp-one-yaml":     {"crp web -o yaml", address},
		"rp-one":           {"rp team/db", address},
		"rp-one-json":      {"rp team/db -o json", address},
		"crp-unknown":      {"crp nothing", address},
		"crp-unknown-yaml": {"crp nothing -o yaml", address},
		"clusters":         {"clusters", address},
		"clusters-wide":    {"clusters -o wide", address},
		"clusters-one":     {"membercluster west -o wide", address},
		"clusters-json":    {"clusters east -o json", address},
		"troubled":         {"crp", troubled},
		"troubled-json":    {"crp idle -o json", troubled},
		"empty":            {"crp", empty},
		"empty-json":       {"clusters -o json", empty},
		"starting":         {"crp", starting},
		"view-unknown":     {"pods", address},
		"output-unknown":   {"crp -o xml", address},
		"crp-name":         {"crp -o name", address},
		"clusters-name":    {"cluster west -o name", address},
		"crp-path":         {"crp -o jsonpath={range.items[*]}{.metadata.name}={.status.observedResourceIndex};{end}", address},
		"crp-one-path":     {"crp web -o jsonpath=status.placementStatuses[0].clusterName", address},
		"path-nothing":     {"crp -o jsonpath=", address},
		"path-broken":      {"crp -o jsonpath={.items[", address},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, append(append([]string{"get"}, strings.Fields(test.args)...), "--server", test.address)...)
			golden.File(t, filepath.Join("testdata", "get", name+".txt"), got.String())
		})
	}
}

// A daemon that cannot be asked is an error that says what to do.
func TestGetWithoutADaemon(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	answer := func(code int, text string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, text) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	for name, test := range map[string]struct{ address, want string }{
		"nobody":       {nobody.URL, "Start one with \"gitfleet run --config gitfleet.yaml\", or say where it is with --server or $GITFLEET_SERVER."},
		"starting":     {answer(503, "no report yet: the daemon is starting\n"), "the daemon answers 503 Service Unavailable: no report yet: the daemon is starting"},
		"another":      {answer(200, "<html>"), "read the daemon's answer"},
		"no address":   {"://", "write http://HOST:PORT"},
		"a long error": {answer(500, strings.Repeat("x", 1<<20)), "the daemon answers 500"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if code := run([]string{"get", "crp", "--server", test.address}, &out, &errOut); code != exit.Failed {
				t.Errorf("exit code %d", code)
			}
			if out.Len() > 0 || !strings.HasPrefix(errOut.String(), "gitfleet: ") || !strings.Contains(errOut.String(), test.want) || errOut.Len() > longestError+200 {
				t.Errorf("it prints %s\nand says %.300s\nwant %s", &out, &errOut, test.want)
			}
		})
	}
}

// The daemon may be named by the environment; a flag wins.
func TestGetAsksTheDaemonOfTheEnvironment(t *testing.T) {
	_, address := listening(t, told())
	t.Setenv(serverEnv, address)
	var out, errOut bytes.Buffer
	if code := run([]string{"get", "clusters"}, &out, &errOut); code != exit.OK || !strings.Contains(out.String(), "east") {
		t.Errorf("%d: %s%s", code, &out, &errOut)
	}
	_, other := listening(t, &status.Report{At: noon})
	out.Reset()
	if code := run([]string{"get", "clusters", "--server", other + "/"}, &out, &errOut); code != exit.OK || strings.Contains(out.String(), "east") {
		t.Errorf("%d: %s%s", code, &out, &errOut)
	}
}

// Wrong arguments are errors, not silence.
func TestGetRefusesWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"get"}, {"get", "crp", "a", "b"}, {"get", "crp", "--nonsense"}, {"nonsense"}} {
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != exit.Failed || errOut.Len() == 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &errOut)
		}
	}
}

// pages collects what a command prints while it runs.
type pages struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
	return p.text.Write(b)
}

// until waits for a text to be printed so many times.
func (p *pages) until(t *testing.T, text string, times int) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		p.mu.Lock()
		n := strings.Count(p.text.String(), text)
		p.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-p.news:
		case <-deadline:
			t.Fatalf("%q was printed %d times, want %d:\n%s", text, n, times, &p.text)
		}
	}
}

// A watcher is get --watch while it runs.
type watcher struct {
	out    *pages
	cancel context.CancelFunc
	done   chan error
}

func watch(t *testing.T, address string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{&pages{news: make(chan struct{}, 1)}, cancel, make(chan error, 1)}
	t.Cleanup(cancel)
	root := newRoot()
	root.SetArgs([]string{"get", "clusters", "--watch", "--server", address})
	root.SetOut(w.out)
	root.SetErr(w.out)
	go func() { w.done <- root.ExecuteContext(ctx) }()
	return w
}

// end waits for the end, and returns how it ended.
func (w *watcher) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}

// Watching prints what is there and then each change, once, and ends well when it
// is told to.
func TestGetWatch(t *testing.T) {
	daemon, address := listening(t, told())
	w := watch(t, address)
	w.out.until(t, "NAME", 1)
	for i := range 3 {
		r := told()
		r.Clusters[0].Name = fmt.Sprint("north-", i)
		daemon.Publish(r)
		w.out.until(t, r.Clusters[0].Name, 1)
	}
	w.cancel()
	if err := w.end(t); err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := strings.Count(w.out.text.String(), "NAME"); n != 4 {
		t.Errorf("printed %d times, want 4:\n%s", n, &w.out.text)
	}
}

// A daemon that ends while it is watched is an error.
func TestGetWatchOfADaemonThatEnds(t *testing.T) {
	daemon := server.New(nil)
	daemon.Publish(told())
	srv := httptest.NewServer(daemon.Handler())
	w := watch(t, srv.URL)
	w.out.until(t, "east", 1)
	srv.CloseClientConnections()
	srv.Close()
	if err := w.end(t); err == nil {
		t.Error("it ended as if all were well")
	}
}

// What get writes of the clusters is what plan takes for the observed fleet.
func TestPlanReadsWhatGetWrites(t *testing.T) {
	_, address := listening(t, told())
	dir := t.TempDir()
	for name, text := range map[string]string{
		"east.yaml": "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: east}\n",
		"app.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n",
		"crp.yaml": `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: app}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: app}]
  policy:
    placementType: PickAll
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Eq, values: ["3"]}]}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, output := range []string{"yaml", "json"} {
		var fleet, errOut bytes.Buffer
		if code := run([]string{"get", "clusters", "-o", output, "--server", address}, &fleet, &errOut); code != exit.OK {
			t.Fatalf("%d: %s", code, &errOut)
		}
		file := filepath.Join(t.TempDir(), "clusters."+output)
		if err := os.WriteFile(file, fleet.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := run([]string{"plan", dir, "--clusters", file}, &out, &errOut)
		if code == exit.Failed || !strings.Contains(out.String(), "east") {
			t.Errorf("from %s: exit code %d: %s%s", output, code, &out, &errOut)
		}
	}
}
