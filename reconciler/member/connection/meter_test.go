package connection

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/member/series"
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
	for _, counted := range [][]string{{"get", "200"}, {"watch", "200"}, {"patch", "429"}, {"delete", "error"}} {
		if n := metrics.Requests.Value("east", counted...); n != 1 {
			t.Errorf("%v requests are counted as %q", n, counted)
		}
	}
	if all := series.Gather(nil, metrics.Requests)[0].Metric; len(all) != 4 {
		t.Errorf("other series are counted too: %v", all)
	}
}
