package pods

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// podsAsked is as much of an API server as has pods, or keeps them to itself.
type podsAsked struct {
	mu     sync.Mutex
	pages  map[string]string // by field selector
	refuse bool
	asked  []string
}

func (p *podsAsked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	p.asked = append(p.asked, strings.Join([]string{r.URL.Path, q.Get("labelSelector"), q.Get("fieldSelector"), q.Get("limit")}, " "))
	w.Header().Set("Content-Type", "application/json")
	if p.refuse {
		apiserver.Refuse(w, http.StatusForbidden, "pods is forbidden")
		return
	}
	w.Write([]byte(p.pages[q.Get("fieldSelector")]))
}

func (p *podsAsked) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

const pullsCanary = `{"items":[{"metadata":{"name":"web-1"},"status":{"containerStatuses":[{"name":"web","state":{"waiting":
	{"reason":"ErrImagePull","message":"https://robot:pa55@registry.example.com: token canary-value is refused"}}}]}}]}`

var webID = api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}

// trackerAt is a tracker that talks to a server of the test.
func trackerAt(t *testing.T, h http.Handler) *Tracker {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	log, metrics := slog.New(slog.NewTextHandler(t.Output(), nil)), connection.NewMetrics()
	c, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics, Log: log}, &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(c, Config{Cluster: "east", FailureTimeout: 30 * time.Second, Wake: func() {}, Log: log})
}

// says is what the pods of the one Deployment say.
func (t *Tracker) says(h health.Health) string {
	return t.Observe(webID, h, 1).Why
}

// ask asks for the pods that are due; a Secret must not be quoted.
func (t *Tracker) ask(test *testing.T) {
	t.Ask(test.Context(), func(api.ID) (*unstructured.Unstructured, types.UID) {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		}}}, "uid"
	}, func() diff.Secrets {
		return diff.SecretsOf(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "canary-value"}}})
	})
}

// due lets the time pass until pods are asked, and waits for what they say.
func (t *Tracker) due(test *testing.T) {
	t.rests = time.Time{}
	for _, w := range t.stuck {
		w.next = time.Time{}
	}
	t.ask(test)
	t.Wait()
	t.Answers()
}

// The pods of a workload that stays unavailable are asked neither before nor too often, and what
// they say is told without a secret.
func TestStuckWorkloadSaysWhy(t *testing.T) {
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	server := &podsAsked{pages: map[string]string{"": pullsCanary}}
	tr := trackerAt(t, server)
	if tr.says(health.Health{State: health.NotAvailableYet, Message: "not yet seen by its controller", Unseen: true}); len(tr.stuck) > 0 {
		t.Error("there is somebody to ask")
	}
	if got := tr.says(missing); got != "" {
		t.Errorf("at first %s", got)
	}
	tr.ask(t)
	if asked := server.take(); len(asked) > 0 {
		t.Errorf("at once it asked %v", asked)
	}
	tr.due(t)
	if asked := server.take(); len(asked) != 1 || asked[0] != "/api/v1/namespaces/web/pods app=web  20" {
		t.Errorf("it asked %q", asked)
	}
	want := "pod web-1, container web: ErrImagePull: https://***@registry.example.com: token (redacted for security reasons) is refused"
	if got := tr.says(missing); got != want {
		t.Errorf("then\n%s, want\n%s", got, want)
	}
	if wait := time.Until(tr.stuck[webID].next); wait < 29*time.Second || time.Until(tr.rests) < 0 {
		t.Errorf("it asks again in %s", wait)
	}
	tr.says(health.Health{State: health.Available})
	if got := tr.says(missing); got != "" || time.Until(tr.stuck[webID].next) < 29*time.Second {
		t.Errorf("broken again it says %s, and is asked in %s", got, time.Until(tr.stuck[webID].next))
	}
	tr.says(health.Health{State: health.Available})
	tr.due(t)
	if asked := server.take(); len(asked) > 0 || len(tr.stuck) > 0 {
		t.Errorf("while all is well it asked %v, and keeps %+v", asked, tr.stuck)
	}
}

// Pods are asked later each time, also if what they say goes to and fro, until there
// is another workload to ask about.
func TestStuckIsAskedLaterEachTime(t *testing.T) {
	server := &podsAsked{}
	tr := trackerAt(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	tr.says(missing)
	for i := range 8 {
		says := []string{"ErrImagePull", "ImagePullBackOff"}[i%2]
		tr.stuck[webID].notStarting = time.Now().Add(-time.Minute)
		server.pages = map[string]string{"": strings.ReplaceAll(pullsCanary, "ErrImagePull", says)}
		tr.due(t)
		if got := tr.says(missing); !strings.Contains(got, says) {
			t.Errorf("it says %s", got)
		}
	}
	if wait := time.Until(tr.stuck[webID].next); wait < askSeldom/2 {
		t.Errorf("after eight answers it asks in %s", wait)
	}
	tr.Observe(webID, missing, 2)
	if wait := time.Until(tr.stuck[webID].next); wait > askAgain {
		t.Errorf("of another generation it asks in %s", wait)
	}
}

// Pods that cannot be started are a failure only when they still cannot after the
// time-out, asked again then; pods that start in between begin anew, and a new
// generation is judged by its own pods.
func TestPodsThatDoNotStartFailAfterATimeout(t *testing.T) {
	server := &podsAsked{}
	tr := trackerAt(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	pods := map[string]string{
		"starts": strings.ReplaceAll(pullsCanary, "ErrImagePull", "ContainerCreating"), "pulls": pullsCanary,
		"runs again": `{"items":[{"metadata":{"name":"web-1"},"status":{"containerStatuses":[{"name":"web","restartCount":2,"state":{"running":{}}}]}}]}`,
	}
	tr.says(missing)
	for i, step := range []struct {
		say    string
		passes time.Duration
		failed bool
	}{
		{"starts", time.Minute, false}, {"pulls", 0, false}, {"pulls", 20 * time.Second, false}, {"starts", 0, false},
		{"pulls", 0, false}, {"runs again", 20 * time.Second, false}, {"pulls", 20 * time.Second, true}, {"starts", 0, false},
	} {
		server.pages = map[string]string{"": pods[step.say]}
		h := tr.stuck[webID]
		if !h.notStarting.IsZero() && !h.failed {
			if at := h.notStarting.Add(30 * time.Second); h.next.After(at) {
				t.Errorf("%d: it asks %s after the time is over", i, h.next.Sub(at))
			}
			h.notStarting = h.notStarting.Add(-step.passes)
		}
		tr.due(t)
		found := tr.Observe(webID, missing, 1)
		why, failed := found.Why, found.Failed
		if failed != step.failed || failed && !strings.HasPrefix(why, "pod web-1, container web: ErrImagePull") || strings.Contains(why, "canary") {
			t.Errorf("%d: failed %t, %q", i, failed, why)
		}
	}
	tr.stuck[webID].failed = true
	if tr.Observe(webID, missing, 2).Failed {
		t.Error("a new generation has failed before its pods were asked")
	}
}

// Among very many pods those are looked for that have not begun.
func TestStuckAmongMany(t *testing.T) {
	server := &podsAsked{pages: map[string]string{"": `{"metadata":{"continue":"x"},"items":[]}`, "status.phase=Pending": pullsCanary}}
	tr := trackerAt(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	tr.says(missing)
	tr.due(t)
	if got := tr.says(missing); !strings.Contains(got, "ErrImagePull") || len(server.take()) != 2 {
		t.Errorf("it says %s", got)
	}
}

// Who may not read pods says that the reason is not known, and logs it once.
func TestStuckWithoutPermission(t *testing.T) {
	server := &podsAsked{refuse: true}
	tr := trackerAt(t, server)
	var log bytes.Buffer
	tr.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	for range 3 {
		tr.says(missing)
		tr.due(t)
	}
	if got := tr.says(missing); got != "the reason is not known: gitfleet may not read pods there" {
		t.Errorf("it says %s", got)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, log.String())
	}
}

// The pods of a workload are selected as its manifest does, and never all.
func TestSelector(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"Deployment","spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}}}`: "a=b,c",
		`{"kind":"Deployment","spec":{"selector":{}}}`:                                           "",
		`{"kind":"Deployment","spec":{"selector":7}}`:                                            "",
		`{"kind":"Job","metadata":{"name":"once"},"spec":{}}`:                                    "job-name=once",
		`{"kind":"CronJob","metadata":{"name":"nightly"},"spec":{}}`:                             "job-name",
		`{"kind":"ReplicationController","spec":{"selector":{"a":"b"}}}`:                         "a=b",
		`{"kind":"ReplicationController","spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`: "a=b",
		`{"kind":"ReplicationController","spec":{}}`:                                             "",
		`{"kind":"Job","spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}}}`:     "a=b",
	} {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if got := selectorOf(&unstructured.Unstructured{Object: o}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What may not be read is asked for again soon, however often that was refused, since somebody may grant the
// permission.
func TestForbiddenPodsAreAskedForAgainSoon(t *testing.T) {
	server := &podsAsked{refuse: true, pages: map[string]string{"": pullsCanary}}
	tr := trackerAt(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	tr.says(missing)
	for range 5 {
		tr.due(t)
		if got := tr.says(missing); got != "the reason is not known: gitfleet may not read pods there" {
			t.Errorf("it says %s", got)
		}
		if wait := time.Until(tr.stuck[webID].next); wait > 30*time.Second {
			t.Errorf("it asks again in %s", wait)
		}
	}
	server.mu.Lock()
	server.refuse = false
	server.mu.Unlock()
	tr.due(t)
	if got := tr.says(missing); !strings.Contains(got, "ErrImagePull") {
		t.Errorf("it says %s", got)
	}
}
