package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Requests are counted by route, so that clients cannot create series by requesting new paths.
func TestRequestsAreCountedByRoute(t *testing.T) {
	s := New(nil)
	for _, path := range []string{"/healthz", "/readyz", "/healthz?x=1", "/names/of/nothing"} {
		askFor(t.Context(), s, path)
	}
	const want = `# HELP gitfleet_http_requests_total Requests to this server, by route and status code.
# TYPE gitfleet_http_requests_total counter
gitfleet_http_requests_total{code="200",handler="GET /healthz"} 2
gitfleet_http_requests_total{code="503",handler="GET /readyz"} 1
`
	if err := testutil.CollectAndCompare(s.metrics.requests, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if n := testutil.ToFloat64(s.metrics.inFlight); n != 0 {
		t.Errorf("%v requests are in flight", n)
	}
}
