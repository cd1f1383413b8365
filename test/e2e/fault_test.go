package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// Whatever error the server returns for the write of one object: the object reports the
// server's message, the others are applied, retries back off, and the object is applied when
// the fault is over.
func TestFaultsOfOneObject(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	cases := map[string]struct {
		do   func(http.RoundTripper, *http.Request) (*http.Response, error)
		want string // in the message
	}{
		"conflict":    {refusing(409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on configmaps "x": please apply your changes to the latest version`), "please apply your changes to the latest version"},
		"invalid":     {refusing(422, metav1.StatusReasonInvalid, `ConfigMap "x" is invalid: data: Forbidden: field is immutable`), "field is immutable"},
		"forbidden":   {refusing(403, metav1.StatusReasonForbidden, `configmaps "x" is forbidden: exceeded quota: small`), "exceeded quota"},
		"denied":      {refusing(400, "", `admission webhook "policy.example.com" denied the request: no`), `admission webhook "policy.example.com" denied the request`},
		"internal":    {refusing(500, metav1.StatusReasonInternalError, "Internal error occurred: etcdserver: leader changed"), "etcdserver: leader changed"},
		"unavailable": {refusing(503, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down"), "apiserver is shutting down"},
		"throttled":   {refusing(429, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"), "too many requests"},
		"too-large":   {refusing(413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728"), "limit is 3145728"},
		"gateway":     {answering(502, "text/html", "<html><body>Bad Gateway</body></html>"), "error on the server"},
		"garbage":     {answering(200, "application/json", `{"metadata": {"name": [1,2`), "the answer is not a Kubernetes object"},
		"reset":       {loseResponse, "connection reset by peer"},
		"refused": {func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}, "connection refused"},
	}
	ms := []*work.Manifest{configMap(ns, "fine", "a")}
	for name, c := range cases {
		f.set(name, fault{writesOf(name), c.do})
		ms = append(ms, configMap(ns, name, "a"))
	}
	start := time.Now()
	a.Set([]*work.Work{workOf("web", "1", ms...)})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	told := map[string]protocol.Verdict{}
	for _, e := range w.Exceptions {
		told[e.ID.Name] = e.Applied
	}
	for name, c := range cases {
		got := told[name]
		if got.OK || got.Reason != api.ManifestApplyFailed || !strings.Contains(got.Message(), c.want) {
			t.Errorf("%s: %t %s: %s\nwant: %s", name, got.OK, got.Reason, got.Message(), c.want)
		}
		if len(got.Message()) > 2000 {
			t.Errorf("%s: the message has %d characters", name, len(got.Message()))
		}
	}
	if len(told) != len(cases) {
		t.Errorf("%d objects failed, want %d: %v", len(told), len(cases), told)
	}
	if _, err := a.get(ns, "fine"); err != nil {
		t.Error(err)
	}
	// The first attempt, and one each after at least three quarters of 1, 2, 4 … s.
	most := 2 + int(time.Since(start)/(750*time.Millisecond))
	for name := range cases {
		if n := a.countRequests(http.MethodPatch, name); n > most {
			t.Errorf("%s: tried %d times within %s", name, n, time.Since(start))
		}
	}
	f.clear()
	a.applied(key, "1")
	for name := range cases {
		if _, err := a.get(ns, name); err != nil {
			t.Error(err)
		}
	}
}

// Retry-After is honoured: no request is sent before that time.
func TestRetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	var mu sync.Mutex
	var at []time.Time
	record := func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		mu.Lock()
		at = append(at, time.Now())
		n := len(at)
		mu.Unlock()
		if n == 1 {
			return refusing(429, metav1.StatusReasonTooManyRequests, "too many requests", "Retry-After", "2")(next, r)
		}
		return next.RoundTrip(r)
	}
	f.set("throttled", fault{writesOf("one"), record})
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"))})
	a.applied(key, "1")
	mu.Lock()
	defer mu.Unlock()
	if len(at) != 2 || at[1].Sub(at[0]) < 2*time.Second {
		t.Errorf("tried at %v", at)
	}
}

// A request without a response times out and is reported as that; it does not affect the
// others.
func TestHangingWriteTimesOut(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t, shortTimeout)
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	f.set("hang", fault{writesOf("stuck"), hanging})
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "stuck", "a"), configMap(ns, "fine", "a"))})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if got := verdictOf(w, "stuck"); !strings.Contains(got.Message(), "the API server did not answer in time") {
		t.Errorf("it says: %s", got.Message())
	}
	if _, err := a.get(ns, "fine"); err != nil {
		t.Error(err)
	}
	f.clear()
	a.applied(key, "1")
}

func verdictOf(w protocol.WorkSeen, name string) protocol.Verdict {
	for _, e := range w.Exceptions {
		if e.ID.Name == name {
			return e.Applied
		}
	}
	return protocol.Verdict{OK: true}
}

// seen collects an agent's observations of its cluster.
type seen struct {
	mu  sync.Mutex
	all []protocol.ClusterSeen
}

func (s *seen) watch(cfg *member.Config) {
	report := cfg.Report
	cfg.Report = func(o protocol.Observation) {
		if c, ok := o.(protocol.ClusterSeen); ok {
			s.mu.Lock()
			s.all = append(s.all, c)
			s.mu.Unlock()
		}
		report(o)
	}
}

// said reports whether the last observation of the cluster has that health, and contains a
// text.
func (s *seen) said(healthy bool, text string) func() (bool, error) {
	return func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.all) == 0 {
			return false, errors.New("nothing was said")
		}
		last := s.all[len(s.all)-1]
		return last.Healthy == healthy && strings.Contains(last.Error, text), fmt.Errorf("it says %t: %s", last.Healthy, last.Error)
	}
}

// everything matches every request.
func everything(*http.Request) bool { return true }

// A cluster that stops answering is reported as that; there are no requests for each of many
// objects, its agent ends at once when it is stopped, and everything is applied when the
// cluster answers again.
func TestHangingClusterIsUnreachable(t *testing.T) {
	t.Parallel()
	var said seen
	a, f := newFaulty(t, shortTimeout, said.watch, func(cfg *member.Config) { cfg.Probe = 300 * time.Millisecond })
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", many(ns, 30, "a")...)})
	a.applied(key, "1")
	a.sent.Reset()
	f.set("hang", fault{everything, hanging})
	a.Set([]*work.Work{workOf("web", "2", many(ns, 30, "b")...)})
	a.eventually("reported as not answering", said.said(false, "the API server did not answer in time"))
	if n := len(a.writes()); n > 16 { // two rounds of the requests that may be in flight
		t.Errorf("a silent server was sent %d writes", n)
	}
	f.clear()
	a.applied(key, "2")
	a.eventually("said to be well", said.said(true, ""))

	// Stopping does not wait for requests: these would time out after an hour.
	a.stop()
	a.adjust = append(a.adjust, longTimeout)
	a.start()
	a.Set([]*work.Work{workOf("web", "2", many(ns, 30, "b")...)})
	a.applied(key, "2")
	var writing atomic.Bool
	f.set("hang", fault{everything, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		writing.Store(writing.Load() || r.Method == http.MethodPatch)
		return hanging(next, r)
	}})
	a.Set([]*work.Work{workOf("web", "3", many(ns, 30, "c")...)})
	a.eventually("writing", func() (bool, error) { return writing.Load(), nil })
	a.stop()
}

// Agents that share a limit of requests in flight are not affected by a cluster that does not
// answer.
func TestHangingClusterDelaysNoOtherCluster(t *testing.T) {
	t.Parallel()
	limit := make(chan struct{}, 4)
	shared := func(cfg *member.Config) { cfg.Limit, cfg.Concurrency = limit, 4 }
	stuck, f := newFaulty(t, shared, longTimeout)
	healthy := newAgent(t, shared)
	ns := healthy.makeNamespace()
	f.set("hang", fault{func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/cm-")
	}, hanging})
	stuck.Set([]*work.Work{workOf("stuck", "1", many(fleet.Namespace(t), 20, "a")...)})
	stuck.eventually("stuck", func() (bool, error) {
		n := stuck.countRequests(http.MethodPatch, "cm-003")
		return len(limit) == 4 || n > 0, nil
	})
	healthy.Set([]*work.Work{workOf("fine", "1", configMap(ns, "one", "a"))})
	healthy.applied(api.PlacementKey{Name: "fine"}, "1")
}

// Expired credentials are read again; changes in between are applied afterwards.
func TestExpiredCredentials(t *testing.T) {
	t.Parallel()
	var said seen
	a, f := newFaulty(t, said.watch, func(cfg *member.Config) { cfg.Probe = 200 * time.Millisecond })
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"))})
	a.applied(key, "1")
	f.set("expired", fault{everything, refusing(401, metav1.StatusReasonUnauthorized, "Unauthorized")})
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	a.eventually("said to be refused", said.said(false, "Unauthorized"))
	before := len(a.sent.Requests())
	f.clear() // the file has been renewed
	a.applied(key, "2")
	if cm, err := a.get(ns, "one"); err != nil || cm.Data["key"] != "b" {
		t.Errorf("%v, %v", cm, err)
	}
	if before > 60 {
		t.Errorf("%d requests without valid credentials", before)
	}
}

// A watch that breaks, in whatever way, is started again with backoff; changes in between are
// found.
func TestBrokenWatchesAreResumed(t *testing.T) {
	t.Parallel()
	event := func(typ string, object any) string {
		raw, err := json.Marshal(map[string]any{"type": typ, "object": object})
		if err != nil {
			panic(err)
		}
		return string(raw) + "\n"
	}
	gone := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}
	tests := map[string]func(http.RoundTripper, *http.Request) (*http.Response, error){
		"410 Gone":               refusing(410, metav1.StatusReasonExpired, "too old resource version"),
		"410 in an event":        answering(200, "application/json", event("ERROR", gone)),
		"ends at once":           answering(200, "application/json", ""),
		"garbage":                answering(200, "application/json", "\x00\x01 not JSON at all\n"),
		"an object that is none": answering(200, "application/json", event("MODIFIED", map[string]any{"kind": "Unknown", "apiVersion": "x/v1", "hello": 1})),
		"500":                    refusing(500, metav1.StatusReasonInternalError, "etcd is on fire"),
		"no connection": func(http.RoundTripper, *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, f := newFaulty(t)
			ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
			watching := func(r *http.Request) bool {
				return r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/configmaps")
			}
			var mu sync.Mutex
			var at []time.Time
			f.set("watch", fault{watching, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
				mu.Lock()
				at = append(at, time.Now())
				mu.Unlock()
				return do(next, r)
			}})
			a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"))})
			a.applied(key, "1")
			a.eventually("tried three times", func() (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				return len(at) >= 3, nil
			})
			mu.Lock()
			if d := at[2].Sub(at[0]); d < 500*time.Millisecond {
				t.Errorf("three watches within %s", d)
			}
			mu.Unlock()
			if err := (situation{a, ns, "one"}).edit(context.Background(), `{"data":{"key":"tampered"}}`); err != nil {
				t.Fatal(err)
			}
			f.clear()
			a.eventually("restored", func() (bool, error) {
				cm, err := a.get(ns, "one")
				return err == nil && cm.Data["key"] == "a", err
			})
		})
	}
}

const inventoryPath = "/" + api.Namespace + "/configmaps/inventory-"

func inventories(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, inventoryPath)
}

// No object is applied for the first time before it is in the inventory: if that cannot be
// written, the object waits, and reports why.
func TestObjectsWaitForTheirInventory(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	f.set("inventory", fault{
		func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/gitfleet-system/configmaps/")
		},
		refusing(500, metav1.StatusReasonInternalError, "etcdserver: no space"),
	})
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"))})
	w := a.until(key, "tried", func(w protocol.WorkSeen) bool { return w.Done })
	if got := verdictOf(w, "one"); !strings.Contains(got.Message(), "write inventory of crp/web") || !strings.Contains(got.Message(), "etcdserver: no space") {
		t.Errorf("it says: %s", got.Message())
	}
	if n := a.countRequests(http.MethodPatch, "one"); n > 0 {
		t.Error("it was applied all the same")
	}
	f.clear()
	a.applied(key, "1")

	// The last write of a pass records the result: it is repeated.
	a.sent.Reset()
	f.set("inventory", fault{inventories, times(2, refusing(500, metav1.StatusReasonInternalError, "etcdserver: no space"))})
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	a.applied(key, "2")
	a.eventually("inventory written", func() (bool, error) {
		var answers []int
		for _, q := range a.sent.Objects() {
			if q.Method == http.MethodPatch && strings.Contains(q.Path, inventoryPath) {
				answers = append(answers, q.Status)
			}
		}
		return slices.Equal(answers, []int{500, 500, 200}), fmt.Errorf("%v", answers)
	})
	a.stop()
	a.start()
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
	a.applied(key, "2")
	if got := a.writes(); len(got) > 0 {
		t.Errorf("after a restart: %v", got)
	}
}

// A deletion that fails is retried, and not forgotten.
func TestFailedDeletionIsRetried(t *testing.T) {
	t.Parallel()
	a, f := newFaulty(t)
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), configMap(ns, "two", "a"))})
	a.applied(key, "1")
	f.set("delete", fault{func(r *http.Request) bool { return r.Method == http.MethodDelete }, times(2, refusing(500, metav1.StatusReasonInternalError, "etcdserver: timeout"))})
	a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "a"))})
	a.eventually("deleted", func() (bool, error) {
		_, err := a.get(ns, "two")
		return err != nil, nil
	})
	a.eventually("answered", func() (bool, error) { // the object is gone before the response arrives
		n := a.countRequests(http.MethodDelete, "two")
		return n == 3, fmt.Errorf("took %d tries, want 3", n)
	})
}

// An object that cannot be read is not taken for absent: if it is no longer wanted, it is
// deleted once that is possible.
func TestUnreadableObjectIsNotTreatedAsDeleted(t *testing.T) {
	t.Parallel()
	tests := map[string]fault{
		"the kind cannot be listed": {func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/deployments")
		}, refusing(500, metav1.StatusReasonInternalError, "etcdserver: timeout")},
		"the group cannot be asked": {func(r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, "/apis/apps/v1") || r.URL.Path == "/apis" || r.URL.Path == "/api"
		}, refusing(503, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")},
	}
	for name, x := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, f := newFaulty(t, shortTimeout)
			ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
			deployment := manifest("deployment", map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": ns},
				"spec": map[string]any{
					"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
						"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example/app:1"}}},
					},
				},
			})
			there := func() bool {
				_, err := a.client.AppsV1().Deployments(ns).Get(context.Background(), "web", metav1.GetOptions{})
				return err == nil
			}
			a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"), deployment)})
			a.applied(key, "1")
			a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })
			a.stop()
			f.set("unknown", x)
			a.start()
			a.Set([]*work.Work{workOf("web", "2", configMap(ns, "one", "b"))})
			// Everything else is applied.
			a.eventually("the rest applied", func() (bool, error) {
				cm, err := a.get(ns, "one")
				return err == nil && cm.Data["key"] == "b", err
			})
			f.clear()
			a.eventually("deleted in the end", func() (bool, error) { return !there(), nil })
		})
	}
}

// A different cluster behind the same address is detected, and nothing is deleted there because
// of the first one's inventory.
func TestReplacedClusterIsDetected(t *testing.T) {
	t.Parallel()
	var said seen
	a, f := newFaulty(t, said.watch, func(cfg *member.Config) { cfg.Probe, cfg.Observe = 200*time.Millisecond, 200*time.Millisecond })
	ns, key := a.makeNamespace(), api.PlacementKey{Name: "web"}
	a.Set([]*work.Work{workOf("web", "1", configMap(ns, "one", "a"))})
	a.applied(key, "1")
	system, err := a.client.CoreV1().Namespaces().Get(context.Background(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.sent.Reset()
	f.set("other", fault{func(r *http.Request) bool { return r.URL.Path == "/api/v1/namespaces" }, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(raw, []byte(system.UID), []byte("11111111-2222-3333-4444-555555555555"))))
		resp.ContentLength = -1
		return resp, err
	}})
	a.eventually("noticed", func() (bool, error) {
		said.mu.Lock()
		defer said.mu.Unlock()
		for _, c := range said.all {
			if strings.Contains(c.Error, "the cluster behind this name is another one now") {
				return true, nil
			}
		}
		return false, nil
	})
	for _, line := range a.writes() {
		if strings.HasPrefix(line, "DELETE") {
			t.Errorf("%s", line)
		}
	}
}
