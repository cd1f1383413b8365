package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// listening returns a daemon that has published reports, and its address.
func listening(t *testing.T, reports ...*status.Report) (*server.Server, string) {
	t.Helper()
	daemon := server.New(nil)
	overview.Serve(daemon, nil, nil)
	for _, r := range reports {
		daemon.Publish(r)
	}
	handler := daemon.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeHTTP(ageless{w}, req) }))
	t.Cleanup(srv.Close)
	return daemon, srv.URL
}

// An ageless response does not say how old the report is, so that the times in the output of a command do not depend on how
// long the machine took to run it.
type ageless struct{ http.ResponseWriter }

func (w ageless) Write(body []byte) (int, error) {
	w.Header().Del("Age")
	return w.ResponseWriter.Write(body)
}

func (w ageless) WriteHeader(status int) {
	w.Header().Del("Age")
	w.ResponseWriter.WriteHeader(status)
}

func (w ageless) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// The output of get. Scripts may read it, so that it must change only on purpose.
func TestGet(t *testing.T) {
	_, address := listening(t, reports.Sample())
	refused := reports.Sample()
	refused.Source.Newest.Hash = "badc0ffee0ddf00d"
	refused.Source.Problems = problem.List{{Origin: api.Origin{Path: "apps/web.yaml", Line: 3}, Field: "spec.replicas", Message: "must be a number"}}
	refused.Source.LoadError = "the commit would delete everything"
	refused.Source.Git = status.Git{URL: "https://git.example.com/fleet", Failures: 4, LastSuccess: reports.Noon.Add(-time.Hour), Error: "connection refused"}
	refused.Details[1].Clusters[0].BlockedDeletions = []string{"ConfigMap/web/one: too much", "ConfigMap/web/two: too much"}
	_, troubled := listening(t, refused)
	_, empty := listening(t, &status.Report{At: reports.Noon})
	_, starting := listening(t, &status.Report{At: reports.Noon, Source: status.Source{Newest: hub.Commit{Hash: "badc0ffee0ddf00d"}, LoadError: "no such path"}})
	tests := map[string]struct {
		args    string
		address string
	}{
		"crp":           {"crp", address},
		"crp-wide":      {"crp -o wide", address},
		"crp-json":      {"crp -o json", address},
		"crp-yaml":      {"crp -o yaml", address},
		"crp-one":       {"crp web", address},
		"crp-one-yaml":  {"crp web -o yaml", address},
		"rp-one":        {"rp team/db", address},
		"rp-one-json":   {"rp team/db -o json", address},
		"crp-unknown":   {"crp nothing", address},
		"clusters":      {"clusters", address},
		"clusters-wide": {"clusters -o wide", address},
		"clusters-one":  {"membercluster west -o wide", address},
		"clusters-json": {"clusters east -o json", address},
		"troubled":      {"crp", troubled},
		"troubled-json": {"crp idle -o json", troubled},
		"empty":         {"crp", empty},
		"starting":      {"crp", starting},
		"view-unknown":  {"pods", address},
		"crp-name":      {"crp -o name", address},
		"clusters-name": {"cluster west -o name", address},
		"crp-path":      {"crp -o jsonpath={range.items[*]}{.metadata.name}={.status.observedResourceIndex};{end}", address},
		"crp-one-path":  {"crp web -o jsonpath=status.placementStatuses[0].clusterName", address},
	}
	book := golden.Open(t, "testdata/get.txt")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, append(append([]string{"get"}, strings.Fields(test.args)...), "--server", test.address)...)
			book.Compare(t, name, got.String())
		})
	}
}

// If the daemon does not respond, the error says what to do.
func TestGetWithoutADaemon(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	answer := func(code int, text string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, text) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	for name, test := range map[string]struct{ address, want string }{
		"nobody":       {nobody.URL, "Start one with \"gitfleet run --config gitfleet.yaml\", or set its address with --server or $GITFLEET_SERVER."},
		"starting":     {answer(503, "no report yet: the daemon is starting\n"), "the daemon answers 503 Service Unavailable: no report yet: the daemon is starting"},
		"another":      {answer(200, "<html>"), "read the daemon's answer"},
		"no address":   {"://", "must be http://HOST:PORT"},
		"a long error": {answer(500, strings.Repeat("x", 1<<20)), "the daemon answers 500"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if code := run([]string{"get", "crp", "--server", test.address}, &out, &errOut); code != exit.Failed {
				t.Errorf("exit code %d", code)
			}
			if out.Len() > 0 || !strings.HasPrefix(errOut.String(), "gitfleet: ") || !strings.Contains(errOut.String(), test.want) || errOut.Len() > 17<<10 {
				t.Errorf("it prints %s\nand says %.300s\nwant %s", &out, &errOut, test.want)
			}
		})
	}
}

// The environment may have the address of the daemon; a flag takes precedence.
func TestGetAsksTheDaemonOfTheEnvironment(t *testing.T) {
	_, address := listening(t, reports.Sample())
	t.Setenv(client.ServerEnv, address)
	var out, errOut bytes.Buffer
	if code := run([]string{"get", "clusters"}, &out, &errOut); code != exit.OK || !strings.Contains(out.String(), "east") {
		t.Errorf("%d: %s%s", code, &out, &errOut)
	}
	_, other := listening(t, &status.Report{At: reports.Noon})
	out.Reset()
	if code := run([]string{"get", "clusters", "--server", other + "/"}, &out, &errOut); code != exit.OK || strings.Contains(out.String(), "east") {
		t.Errorf("%d: %s%s", code, &out, &errOut)
	}
}

// Wrong arguments are errors.
func TestGetRefusesWrongArguments(t *testing.T) {
	for _, args := range [][]string{{"get"}, {"get", "crp", "a", "b"}, {"get", "crp", "--nonsense"}, {"nonsense"}} {
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != exit.Failed || errOut.Len() == 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &errOut)
		}
	}
}

// pages collects the output of a running command.
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

// until waits until a text was printed a number of times.
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

// A watcher is a running get --watch.
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

// end waits for the end, and returns the error.
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

// Watching prints the present state and then each change once, and ends without an error when
// it is stopped.
func TestGetWatch(t *testing.T) {
	daemon, address := listening(t, reports.Sample())
	w := watch(t, address)
	w.out.until(t, "NAME", 1)
	for i := range 3 {
		r := reports.Sample()
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

// If the daemon ends while it is watched, that is an error.
func TestWatchOfADaemonThatEnds(t *testing.T) {
	for command, shown := range map[string]string{"get clusters": "ams", "events": "crp/web", "status": "crp/web"} {
		t.Run(command, func(t *testing.T) {
			daemon := server.New(nil)
			overview.Serve(daemon, nil, nil)
			daemon.Publish(reports.Settled(t).Report)
			srv := httptest.NewServer(daemon.Handler())
			r := start(t, append(strings.Fields(command), "--watch", "--server", srv.URL)...)
			r.out.until(t, shown, 1)
			srv.Listener.Close() // first, so that no request is repeated on another connection
			srv.CloseClientConnections()
			srv.Close()
			select {
			case err := <-r.done:
				if err == nil {
					t.Error("it ended as if all were well")
				}
			case <-time.After(10 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}

// plan accepts the output of get mc as the observed fleet.
func TestPlanReadsWhatGetWrites(t *testing.T) {
	_, address := listening(t, reports.Sample())
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

// No output shows a time that is not known as the year one.
func TestNoZeroTimeIsPrinted(t *testing.T) {
	suspended := reports.Settled(t)
	suspended.In.Ledger.Suspend(ledger.Suspension{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "INC-1", Since: reports.Noon})
	suspended.Turn(time.Second)
	before := reports.New(t) // no commit yet
	before.Report = &status.Report{At: reports.Noon, Source: status.Source{Git: status.Git{URL: "https://git.example.com/fleet", Failures: 2, Error: "refused"}}}
	for name, s := range map[string]*reports.Fleet{
		"settled": reports.Settled(t), "troubled": reports.Troubled(t), "away": reports.Away(t, true), "suspended": suspended, "before": before,
	} {
		_, address := listening(t, s.Report)
		for _, command := range []string{
			"status", "status --verbose", "get crp", "get clusters", "get suspensions", "describe crp web", "describe cluster ams", "tree crp/web",
			"events", "explain crp/web", "drift list --all", "drift show crp/web", "wait crp/web --timeout 1ms",
		} {
			for _, format := range []string{"", "-o json", "-o yaml"} {
				var out bytes.Buffer
				transcribe(&out, append(strings.Fields(command+" "+format), "--server", address)...)
				if strings.Contains(out.String(), "0001-01-01") {
					t.Errorf("%s: gitfleet %s %s prints\n%s", name, command, format, &out)
				}
			}
		}
		resp, err := http.Get(address + "/report")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || bytes.Contains(body, []byte("0001-01-01")) {
			t.Errorf("%s: the report has %s, %v", name, body, err)
		}
	}
}
