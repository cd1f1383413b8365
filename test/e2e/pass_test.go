package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
)

// Watches start after a pass, at the resource version of its beginning: changes by others in
// between are noticed.
func TestChangesDuringAPassAreDetected(t *testing.T) {
	t.Parallel()
	var a *agent
	var once sync.Once
	ns, key := fleet.Namespace(t), api.PlacementKey{Name: "web"}
	a = newAgent(t, func(cfg *member.Config) {
		record := cfg.Wrap
		cfg.Wrap = func(next http.RoundTripper) http.RoundTripper {
			next = record(next)
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/last") {
					once.Do(func() {
						noError(t, situation{a, ns, "one"}.edit(context.Background(), `{"data":{"key":"tampered"}}`))
					})
				}
				return next.RoundTrip(r)
			})
		}
	})
	a.Set([]*work.Work{workOf("web", "1", namespaceOf(ns), configMap(ns, "one", "a"), configMap(ns, "two", "a"), deployment(ns, "last", 1, nil))})
	a.awaitDrift(key, "one", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Count == 1 })
	a.eventually("as it should be", func() (bool, error) {
		one, err := a.get(ns, "one")
		return err == nil && one.Data["key"] == "a", err
	})
	requests := a.sent.Requests()
	last := slices.IndexFunc(requests, func(q fleet.Request) bool { return strings.HasSuffix(q.Path, "/deployments/last") })
	if early := slices.IndexFunc(requests, fleet.Watches); early < last {
		t.Errorf("request %d is a watch, and the last object is applied by request %d: %+v", early, last, requests[early])
	}

	// When a kind is no longer watched, the others still are.
	a.Set([]*work.Work{workOf("web", "2", namespaceOf(ns), configMap(ns, "one", "a"), configMap(ns, "two", "a"))})
	a.applied(key, "2")
	noError(t, situation{a, ns, "two"}.edit(context.Background(), `{"data":{"key":"tampered"}}`))
	a.awaitDrift(key, "two", "put back", func(d protocol.Drift) bool { return d.State == api.DriftRepaired && d.Count == 1 })
}
