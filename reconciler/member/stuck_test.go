package member

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
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

// stuckSession has one Deployment that does not get on, and a Secret.
func stuckSession(t *testing.T, h http.Handler) (*session, func(health.Health) string) {
	crp := api.PlacementKey{Name: "web"}
	secret := api.ID{Kind: "Secret", Namespace: "web", Name: "token"}
	of := func(id api.ID, o map[string]any) *work.Manifest {
		return &work.Manifest{Object: &api.Object{ID: id, Hash: "hash", Object: &unstructured.Unstructured{Object: o}}}
	}
	s := sessionAt(t, h)
	s.works, s.trouble, s.unseen = map[api.PlacementKey]work.Work{}, map[api.ID]*trouble{}, map[api.ID]bool{}
	s.want([]work.Work{{Placement: crp, Manifests: []*work.Manifest{
		of(webID, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		}}),
		of(secret, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"token": "canary-value"}}),
	}}})
	generation := int64(1)
	return s, func(now health.Health) string {
		s.live.Put(webID, &observed.Object{Version: 1, Generation: generation, Health: now})
		state, _ := s.state(crp, webID)
		return state.Available.Message
	}
}

// due lets the time pass until pods are asked, and waits for what they say.
func (s *session) due(t *testing.T) {
	s.stuck.rests = time.Time{}
	for _, h := range s.stuck.of {
		h.next = time.Time{}
	}
	s.askWhy(t.Context())
	s.running.Wait()
	s.absorb()
}

// What is told of a workload that stays unavailable ends with what its pods say,
// without a secret; and they are asked neither before nor too often.
func TestStuckWorkloadSaysWhy(t *testing.T) {
	const first = "Manifest is not yet available; Fleet will check again later (0 of 2 replicas updated"
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	server := &podsAsked{pages: map[string]string{"": pullsCanary}}
	s, told := stuckSession(t, server)
	if got := told(health.Health{State: health.NotAvailableYet, Message: "not yet seen by its controller"}); s.stuck != nil {
		t.Errorf("there is somebody to ask: %s", got)
	}
	if got := told(missing); got != first+")" {
		t.Errorf("at first %s", got)
	}
	s.askWhy(t.Context())
	if asked := server.take(); len(asked) > 0 {
		t.Errorf("at once it asked %v", asked)
	}
	s.due(t)
	if asked := server.take(); len(asked) != 1 || asked[0] != "/api/v1/namespaces/web/pods app=web  20" {
		t.Errorf("it asked %q", asked)
	}
	want := first + "; pod web-1, container web: ErrImagePull: https://***@registry.example.com: token (redacted for security reasons) is refused)"
	if got := told(missing); got != want {
		t.Errorf("then\n%s, want\n%s", got, want)
	}
	if wait := time.Until(s.stuck.of[webID].next); wait < 29*time.Second || time.Until(s.stuck.rests) < 0 {
		t.Errorf("it asks again in %s", wait)
	}
	if got := told(health.Health{State: health.Available}); got != "Manifest is available" {
		t.Errorf("and at last %s", got)
	}
	if got := told(missing); got != first+")" || time.Until(s.stuck.of[webID].next) < 29*time.Second {
		t.Errorf("broken again it says %s, and is asked in %s", got, time.Until(s.stuck.of[webID].next))
	}
	told(health.Health{State: health.Available})
	s.due(t)
	if asked := server.take(); len(asked) > 0 || s.stuck != nil {
		t.Errorf("while all is well it asked %v, and keeps %+v", asked, s.stuck)
	}
}

// What keeps pods from being made is told without secrets too, also those that come
// later; and where a status says nothing, pods do.
func TestRefusedPodsKeepSecrets(t *testing.T) {
	s, told := stuckSession(t, &podsAsked{pages: map[string]string{"": pullsCanary}})
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
	s.due(t)
	if got := told(health.Health{State: health.NotAvailableYet}); !strings.HasSuffix(got, "(pod web-1, container web: ErrImagePull: https://***@registry.example.com: token (redacted for security reasons) is refused)") {
		t.Errorf("it says %s", got)
	}
}

// What is cut off is cut off after Secrets were masked: half of one would not be
// found. And it is told of no kind what its controller quotes of them.
func TestNoPartOfASecretIsTold(t *testing.T) {
	s, told := stuckSession(t, &podsAsked{})
	for n := range 60 {
		message := "0 of 2 replicas updated: " + strings.Repeat("x", 360+n) + " canary-value and more"
		if got := told(health.Health{State: health.NotAvailableYet, Message: message}); strings.Contains(got, "cana") || len(got) > 600 {
			t.Fatalf("after %d letters it says %s", 360+n, got)
		}
	}
	widget := api.ID{Group: "example.com", Kind: "Widget", Namespace: "web", Name: "one"}
	if got := s.unquoted(widget, "the token canary-value is refused"); got != "the token (redacted for security reasons) is refused" {
		t.Errorf("of a custom resource it says %s", got)
	}
}

// Pods are asked later each time, also if what they say goes to and fro, until there
// is another workload to ask about.
func TestStuckIsAskedLaterEachTime(t *testing.T) {
	server := &podsAsked{}
	s, told := stuckSession(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	told(missing)
	for i := range 8 {
		says := []string{"ErrImagePull", "ImagePullBackOff"}[i%2]
		s.stuck.of[webID].notStarting = time.Now().Add(-time.Minute)
		server.pages = map[string]string{"": strings.ReplaceAll(pullsCanary, "ErrImagePull", says)}
		s.due(t)
		if got := told(missing); !strings.Contains(got, says) {
			t.Errorf("it says %s", got)
		}
	}
	if wait := time.Until(s.stuck.of[webID].next); wait < askSeldom/2 {
		t.Errorf("after eight answers it asks in %s", wait)
	}
	s.hindered(webID, missing, 2)
	if wait := time.Until(s.stuck.of[webID].next); wait > askAgain {
		t.Errorf("of another generation it asks in %s", wait)
	}
}

// Pods that cannot be started are a failure only when they still cannot after the
// time-out, asked again then; pods that start in between begin anew, and a new
// generation is judged by its own pods.
func TestPodsThatDoNotStartFailAfterATimeout(t *testing.T) {
	server := &podsAsked{}
	s, told := stuckSession(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	pods := map[string]string{
		"starts": strings.ReplaceAll(pullsCanary, "ErrImagePull", "ContainerCreating"), "pulls": pullsCanary,
		"runs again": `{"items":[{"metadata":{"name":"web-1"},"status":{"containerStatuses":[{"name":"web","restartCount":2,"state":{"running":{}}}]}}]}`,
	}
	failure := func() string {
		t.Helper()
		state, _ := s.state(api.PlacementKey{Name: "web"}, webID)
		return state.Failure
	}
	told(missing)
	for i, step := range []struct {
		say    string
		passes time.Duration
		failed bool
	}{
		{"starts", time.Minute, false}, {"pulls", 0, false}, {"pulls", 20 * time.Second, false}, {"starts", 0, false},
		{"pulls", 0, false}, {"runs again", 20 * time.Second, false}, {"pulls", 20 * time.Second, true}, {"starts", 0, false},
	} {
		server.pages = map[string]string{"": pods[step.say]}
		h := s.stuck.of[webID]
		if !h.notStarting.IsZero() && !h.failed {
			if at := h.notStarting.Add(30 * time.Second); h.next.After(at) {
				t.Errorf("%d: it asks %s after the time is over", i, h.next.Sub(at))
			}
			h.notStarting = h.notStarting.Add(-step.passes)
		}
		s.due(t)
		if got := failure(); (got != "") != step.failed || step.failed && !strings.HasPrefix(got, "pod web-1, container web: ErrImagePull") || strings.Contains(got, "canary") {
			t.Errorf("%d: failure %q", i, got)
		}
	}
	told(health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated", Failure: "ProgressDeadlineExceeded: canary-value has timed out"})
	if got := failure(); got != "ProgressDeadlineExceeded: (redacted for security reasons) has timed out; pod web-1, container web: ContainerCreating" {
		t.Errorf("beyond its deadline: %q", got)
	}
	s.stuck.of[webID].failed = true
	if _, failed := s.hindered(webID, missing, 2); failed {
		t.Error("a new generation has failed before its pods were asked")
	}
}

// Among very many pods those are looked for that have not begun.
func TestStuckAmongMany(t *testing.T) {
	server := &podsAsked{pages: map[string]string{"": `{"metadata":{"continue":"x"},"items":[]}`, "status.phase=Pending": pullsCanary}}
	s, told := stuckSession(t, server)
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	told(missing)
	s.due(t)
	if got := told(missing); !strings.Contains(got, "ErrImagePull") || len(server.take()) != 2 {
		t.Errorf("it says %s", got)
	}
}

// Who may not read pods adds nothing, and says once that it is so.
func TestStuckWithoutPermission(t *testing.T) {
	server := &podsAsked{refuse: true}
	s, told := stuckSession(t, server)
	var log bytes.Buffer
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	missing := health.Health{State: health.NotAvailableYet, Message: "0 of 2 replicas updated"}
	for range 3 {
		told(missing)
		s.due(t)
	}
	if got := told(missing); !strings.HasSuffix(got, "(0 of 2 replicas updated)") {
		t.Errorf("it says %s", got)
	}
	if n := strings.Count(log.String(), "pods may not be read"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, log.String())
	}
}

// The pods of a workload are selected as its manifest does, and never all.
func TestPodsOf(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"Deployment","spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}}}`: "a=b,c",
		`{"kind":"Deployment","spec":{"selector":{}}}`:                                       "",
		`{"kind":"Deployment","spec":{"selector":7}}`:                                        "",
		`{"kind":"Job","metadata":{"name":"once"},"spec":{}}`:                                "job-name=once",
		`{"kind":"Job","spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}}}`: "a=b",
	} {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if got := podsOf(&unstructured.Unstructured{Object: o}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
