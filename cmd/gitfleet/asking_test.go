package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// The output of the commands that show single things, for a healthy fleet and for one with
// trouble. It must change only on purpose.
func TestAsking(t *testing.T) {
	_, settled := listening(t, reports.Settled(t).Report)
	_, troubled := listening(t, reports.Troubled(t).Report)
	_, empty := listening(t, &status.Report{At: reports.Noon})
	_, away := listening(t, reports.Away(t, true).Report)
	_, denied := listening(t, reports.Away(t, false).Report)
	books := map[string]*golden.Book{}
	for _, command := range []string{"tree", "describe", "events", "wait"} {
		books[command] = golden.Open(t, "testdata/"+command+".txt")
	}
	for name, test := range map[string]struct{ args, address string }{
		"tree/web":             {"tree crp/web", settled},
		"tree/web-troubled":    {"tree crp/web", troubled},
		"tree/web-one-cluster": {"tree crp/web --cluster ams", troubled},
		"tree/web-json":        {"tree crp/web --cluster ber -o json", troubled},
		"tree/unknown":         {"tree crp/wbe", settled},
		"tree/unknown-cluster": {"tree crp/web --cluster moon", settled},
		"tree/short-name":      {"tree web --cluster ams", settled},
		"tree/no-placement":    {"tree deployment/web", settled},

		"describe/web":          {"describe crp web", settled},
		"describe/web-troubled": {"describe crp/web", troubled},
		"describe/tools":        {"describe clusterresourceplacement tools", troubled},
		"describe/spare":        {"describe crp spare", troubled},
		"describe/cluster":      {"describe cluster ams", troubled},
		"describe/cluster-down": {"describe membercluster/dal", troubled},
		"describe/nonsense":     {"describe pods web", settled},
		"describe/unknown-name": {"describe tolos", settled},

		"events/all":     {"events", troubled},
		"events/web":     {"events crp/web", troubled},
		"events/json":    {"events crp/spare -o json", troubled},
		"events/none":    {"events", empty},
		"events/newest":  {"events --newest 2", troubled},
		"events/bare":    {"events crp/web --no-headers --newest 1", troubled},
		"events/cluster": {"events dal", troubled},

		"wait/applied":      {"wait crp/web --for=applied --commit a1a1a1a", settled},
		"wait/available":    {"wait crp/tools --for=available", settled},
		"wait/not-yet":      {"wait crp/web --for=available --timeout 10ms", troubled},
		"wait/one-missing":  {"wait crp/spare --for=applied --timeout 10ms", troubled},
		"wait/refused":      {"wait crp/web --for=available --commit c3c3c3c3", troubled},
		"wait/other-commit": {"wait crp/web --for=available --commit dddddddd --timeout 10ms", settled},
		"wait/away":         {"wait crp/web --for=available --timeout 10ms", away},
		"wait/denied":       {"wait crp/web --for=available", denied},
		"wait/held":         {"wait crp/tools --for=available", troubled},
		"wait/no-commit":    {"wait crp/web --for=applied --timeout 10ms", empty},
		"wait/unknown":      {"wait crp/wbe --for=applied", settled},
		"wait/for-nothing":  {"wait crp/web", settled},
		"wait/for-what":     {"wait crp/web --for=ready", settled},
		"wait/short-hash":   {"wait crp/web --for=applied --commit a1", settled},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, append(strings.Fields(test.args), "--server", test.address)...)
			command, what, _ := strings.Cut(name, "/")
			books[command].Compare(t, what, got.String())
		})
	}
}

// historyOf serves a history with these entries.
func historyOf(t *testing.T, entries ...history.Entry) http.Handler {
	t.Helper()
	r := history.Open(history.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	r.Add(entries...)
	cancel()
	r.Run(ctx)
	return server.HistoryHandler(r)
}

// remembering returns the address of a daemon with a history.
func remembering(t *testing.T, entries ...history.Entry) string {
	t.Helper()
	daemon := server.New(nil)
	daemon.Mount("GET /history", historyOf(t, entries...))
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// years returns a few entries of each kind.
func years() []history.Entry {
	at := func(seconds int) time.Time { return reports.Noon.Add(time.Duration(seconds) * time.Second) }
	web := func(seconds int, event history.Event, cluster, revision, message string) history.Entry {
		return history.Entry{Time: at(seconds), Kind: history.Cluster, Event: event, Placement: "crp/web", Cluster: cluster, Revision: revision, Message: message}
	}
	revised := func(seconds int, revision, commit, author, subject string) history.Entry {
		return history.Entry{Time: at(seconds), Kind: history.Placement, Event: history.Revised, Placement: "crp/web", Revision: revision, Commit: commit, Author: author, Subject: subject}
	}
	return []history.Entry{
		{Time: at(-9), Kind: history.Member, Event: history.Joined, Cluster: "ams"},
		{Time: at(-1), Kind: history.Commit, Event: history.InForce, Commit: reports.FirstCommit, Author: "Ada Lovelace <ada@example.com>", Subject: "Bring the web"},
		revised(0, "0", reports.FirstCommit, "Ada Lovelace <ada@example.com>", "Bring the web"),
		web(0, history.Assigned, "ams", "0", ""), web(0, history.Assigned, "ber", "0", ""),
		{Time: at(1), Kind: history.Object, Event: history.Created, Placement: "crp/web", Cluster: "ams", Object: "ConfigMap/web/one", Commit: reports.FirstCommit},
		web(2, history.Applied, "ams", "0", ""), web(3, history.Available, "ams", "0", ""),
		web(4, history.Applied, "ber", "0", ""), web(40, history.Available, "ber", "0", ""),
		{Time: at(900), Kind: history.Object, Event: history.Repaired, Placement: "crp/web", Cluster: "ber", Object: "ConfigMap/web/one", Commit: reports.FirstCommit, By: "kubectl-edit"},
		revised(3600, "1", reports.SecondCommit, "Grace Hopper <grace@example.com>", "Say \033[31mtwo"),
		web(3600, history.Assigned, "ams", "1", ""),
		web(3605, history.Failed, "ams", "1", "ConfigMap/web/one: denied"),
		{Time: at(4000), Kind: history.Action, Event: history.Suspended, Placement: "crp/web", By: "ada", Message: "INC-1"},
		{Time: at(4100), Kind: history.Commit, Event: history.Refused, Commit: reports.BadCommit, Author: "Edsger <edsger@example.com>", Subject: "Break it", Message: "apps/web.yaml:3: spec.replicas: must be a number"},
	}
}

// The output of history for a record.
func TestHistoryOfAPlacement(t *testing.T) {
	address := remembering(t, years()...)
	book := golden.Open(t, "testdata/history.txt")
	for name, args := range map[string]string{
		"revisions": "crp/web", "revisions-wide": "crp/web -o wide", "revisions-json": "crp/web -o json", "revisions-none": "crp/tools",
		"lines": "", "lines-newest": "--newest 2", "lines-cluster": "crp/web --cluster ber", "lines-object": "--object configmap", "lines-json": "--kind action -o json",
		"since": "--since 2026-03-01T13:00:00Z", "no-placement": "web",
		"export": "--export --kind cluster --cluster ams", "export-all": "--export",
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			transcribe(&got, append(append([]string{"history"}, strings.Fields(args)...), "--server", address)...)
			book.Compare(t, name, got.String())
		})
	}
	_, none := listening(t, &status.Report{At: reports.Noon})
	if said := say("history", "--server", none); !strings.Contains(said, "this daemon keeps no history") {
		t.Errorf("it says %s", said)
	}
}

// A running is a command that runs while the daemon publishes reports.
type running struct {
	out    *pages
	cancel context.CancelFunc
	done   chan error
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := &running{&pages{news: make(chan struct{}, 1)}, cancel, make(chan error, 1)}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(r.out)
	root.SetErr(r.out)
	go func() { r.done <- root.ExecuteContext(ctx) }()
	return r
}

// wait ends as soon as the condition is true, and prints what is missing until then. A restart
// of the daemon does not matter.
func TestWaitUntilItIsTrue(t *testing.T) {
	s := reports.Settled(t)
	s.Commit(reports.SecondCommit, "Grace", "Say two", reports.WithValue(reports.Manifests, "2"))
	s.Turn(time.Second)
	daemon := server.New(nil)
	daemon.Publish(s.Report)
	var mu sync.Mutex
	away := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		gone := away
		mu.Unlock()
		if gone {
			http.Error(w, "no report yet: the daemon is starting", http.StatusServiceUnavailable)
			return
		}
		daemon.Handler().ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	r := start(t, "wait", "crp/web", "--for", "available", "--commit", reports.SecondCommit, "--server", srv.URL)
	r.out.until(t, "waiting: ", 1)
	mu.Lock()
	away = true
	mu.Unlock()
	s.Says("ams", "web")
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	r.out.until(t, "the daemon is starting", 1)
	mu.Lock()
	away = false
	mu.Unlock()
	for _, cluster := range []string{"ams", "ber", "chi", "dal"} {
		s.Says(cluster, "web")
		s.Turn(time.Second)
		daemon.Publish(s.Report)
	}
	if err := <-r.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if text := r.out.text.String(); !strings.HasSuffix(text, "crp/web is available on 4 clusters at commit b2b2b2b2\n") {
		t.Errorf("it says %s", text)
	}
}

// A commit counts while the commit in force descends from it: commits of others on top do not
// matter, but wait ends if the commit is removed from the history.
func TestWaitForACommitWithOthersOnTop(t *testing.T) {
	for name, test := range map[string]struct {
		descends bool
		code     error
		says     string
	}{
		"on top":     {true, nil, "crp/web is applied on 4 clusters at commit b2b2b2b2, which came after a1a1a1a1\n"},
		"instead of": {false, exit.Attention, "commit a1a1a1a1 is no longer in force: b2b2b2b2 is, which does not descend from it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reports.Settled(t)
			s.Says("ams", "web", reports.NotApplied("one", "denied"))
			s.Turn(time.Second)
			daemon := server.New(nil)
			asked := make(chan string, 100)
			daemon.MountContains(func(_ context.Context, head, commit string) (bool, error) {
				asked <- head + " " + commit
				return test.descends, nil
			})
			daemon.Publish(s.Report)
			srv := httptest.NewServer(daemon.Handler())
			t.Cleanup(srv.Close)
			r := start(t, "wait", "crp/web", "--for", "applied", "--commit", strings.ToUpper(reports.FirstCommit), "--server", srv.URL)
			r.out.until(t, "failed: ams: ConfigMap/web/one: denied", 1)
			s.Commit(reports.SecondCommit, "Grace", "Say two", reports.WithValue(reports.Manifests, "2"))
			s.Turn(time.Second)
			daemon.Publish(s.Report)
			for _, cluster := range []string{"ams", "ber", "chi", "dal"} {
				s.Says(cluster, "web")
				s.Turn(time.Second)
				daemon.Publish(s.Report)
			}
			if err := <-r.done; err != test.code {
				t.Errorf("ended with %v", err)
			}
			if text := r.out.text.String(); !strings.HasSuffix(text, test.says) {
				t.Errorf("it says %s", text)
			}
			if len(asked) != 1 || <-asked != reports.SecondCommit+" "+reports.FirstCommit {
				t.Errorf("the daemon was asked %d more times for what it had answered", len(asked))
			}
		})
	}
}

// If a later commit is refused, the earlier ones wait until it is fixed.
func TestWaitBelowARefusedCommit(t *testing.T) {
	daemon := server.New(nil)
	daemon.MountContains(func(_ context.Context, head, _ string) (bool, error) { return head == reports.BadCommit, nil })
	daemon.Publish(reports.Troubled(t).Report)
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	said := say("wait", "crp/web", "--for=applied", "--commit", "e5e5e5e5", "--timeout", "10ms", "--server", srv.URL)
	if want := "commit c3c3c3c3 came after e5e5e5e5 and is refused: "; !strings.Contains(said, want) {
		t.Errorf("it says %s", said)
	}
}

// events --watch prints each event once, and again when it occurs again.
func TestEventsWatch(t *testing.T) {
	s := reports.Settled(t)
	daemon, address := listening(t, s.Report)
	r := start(t, "events", "--watch", "--server", address)
	r.out.until(t, "crp/web", 1)
	daemon.Publish(s.Report)
	s.Down("dal", "cable cut")
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	r.out.until(t, "cable cut", 1)
	s.Seen("dal")
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	s.Down("dal", "cable cut")
	s.Turn(time.Second)
	daemon.Publish(s.Report)
	r.out.until(t, "cable cut", 2)
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if n := strings.Count(r.out.text.String(), "cable cut"); n != 2 {
		t.Errorf("told %d times:\n%s", n, &r.out.text)
	}
}

// Text from elsewhere cannot control the terminal.
func TestTextsAreHarmless(t *testing.T) {
	const evil = "a\033[2Jb\rc\u202ed"
	field := api.Difference{
		PatchDetail: api.PatchDetail{Path: "/data/" + evil, ValueInMember: evil + "\n" + evil, ValueInHub: evil}, By: []api.Actor{{Manager: evil}},
	}
	drift := status.Drift{Placement: "crp/web", Cluster: "east", Message: evil, By: field.By, Paths: []api.Difference{field}}
	_, address := listening(t, &status.Report{Drifts: []status.Drift{drift}, Details: []*status.Detail{{Placement: "crp/web"}}})
	var drifted bytes.Buffer
	transcribe(&drifted, "drift", "show", "crp/web", "--server", address)
	for name, got := range map[string]string{
		"harmless": output.Sanitize(evil), "shorten": output.Truncate(evil, 90), "fit": output.Fit(evil, 90), "wrap": strings.Join(output.Wrap(evil, 90), " "),
		"drift show": drifted.String(),
	} {
		if strings.ContainsAny(got, "\033\r\u202e") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := output.Sanitize("Grüße, 世界…"); got != "Grüße, 世界…" {
		t.Errorf("%q", got)
	}
}

// A placement that was removed from the repository and still has objects is shown with the
// reason, by all commands.
func TestRemovedPlacementIsShownUntilItIsGone(t *testing.T) {
	s := reports.Settled(t)
	s.Commit(reports.SecondCommit, "Grace Hopper", "Remove the web", reports.WithValue(strings.ReplaceAll(reports.Manifests, "place web of web,docks unavailable 1\n", ""), "1"))
	s.Turn(time.Second)
	s.Says("ams", "web", reports.Lingering("old", "example.com/backup"))
	s.Says("ber", "web", reports.NotDeleted("one", "admission webhook denied the request"))
	s.Turn(time.Second)
	_, address := listening(t, s.Report)
	for _, command := range []string{"status", "tree crp/web", "describe crp/web"} {
		var out bytes.Buffer
		transcribe(&out, append(strings.Fields(command), "--server", address)...)
		said := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"ConfigMap/web/old (finalizers: example.com/backup)", "ConfigMap/web/one: admission webhook denied the request"} {
			if !strings.Contains(said, want) {
				t.Errorf("gitfleet %s does not say %q:\n%s", command, want, &out)
			}
		}
	}
}

// Commands that show one placement request only that placement, since the whole report of a
// large fleet has megabytes.
func TestOneIsAskedForAlone(t *testing.T) {
	daemon, _ := listening(t, reports.Sample())
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.URL.RequestURI())
		daemon.Handler().ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	for line, want := range map[string]string{
		"get crp web":                        "/report?placement=crp%2Fweb",
		"get crp web -o yaml":                "/report?placement=crp%2Fweb",
		"get rp team/db":                     "/report?placement=rp%2Fteam%2Fdb",
		"get rp db -n team":                  "/report?placement=rp%2Fteam%2Fdb",
		"get crp":                            "/report",
		"get clusters east":                  "/report?cluster=east",
		"describe cluster east":              "/report?cluster=east",
		"describe crp web":                   "/report?placement=crp%2Fweb",
		"describe resourceplacement/team/db": "/report?placement=rp%2Fteam%2Fdb",
		"events crp/web":                     "/report?placement=crp%2Fweb",
	} {
		asked = nil
		var out, errOut bytes.Buffer
		if code := run(append(strings.Fields(line), "--server", srv.URL), &out, &errOut); code != exit.OK || !slices.Equal(asked, []string{want}) {
			t.Errorf("%s: %d, asked for %q, want %s: %s", line, code, asked, want, &errOut)
		}
	}
}
