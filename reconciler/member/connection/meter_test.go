package connection

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Requests are counted by verb and code, including throttled and unanswered ones.
func TestRequestsAreCounted(t *testing.T) {
	metrics := NewMetrics()
	inFlight := -1.0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inFlight = metrics.InFlight.Value("east")
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	client := http.Client{Transport: &meter{http.DefaultTransport, &metrics, "east"}}
	ask := func(method, path string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(r); err == nil {
			answer.Body.Close()
		}
	}
	ask("GET", "/api")
	if inFlight != 1 {
		t.Errorf("%v requests are in flight during one", inFlight)
	}
	ask("GET", "/api?watch=true")
	if inFlight != 0 {
		t.Errorf("%v requests are in flight during a watch", inFlight)
	}
	ask("PATCH", "/busy")
	server.Close()
	ask("DELETE", "/api")
	const want = `# HELP gitfleet_member_requests_total Requests to the API server of a member cluster, by verb and status code; the code is 429 for a throttled request, and error for one without a response.
# TYPE gitfleet_member_requests_total counter
gitfleet_member_requests_total{cluster="east",code="200",verb="get"} 1
gitfleet_member_requests_total{cluster="east",code="200",verb="watch"} 1
gitfleet_member_requests_total{cluster="east",code="429",verb="patch"} 1
gitfleet_member_requests_total{cluster="east",code="error",verb="delete"} 1
`
	if err := testutil.CollectAndCompare(metrics.Requests, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
