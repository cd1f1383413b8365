package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/picture"
)

// answering is a Prometheus in which every query has one series, of two placements.
func answering(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data any
		switch {
		case strings.HasSuffix(r.URL.Path, "/label/placement/values"):
			data = []string{"crp/<orders>", "crp/shop"}
		case strings.HasSuffix(r.URL.Path, "/label/fleet/values"):
			data = []string{"demo"}
		case strings.HasSuffix(r.URL.Path, "/label/cluster/values"):
			data = []string{"paris"}
		case strings.HasSuffix(r.URL.Path, "/query_range"):
			labels := map[string]string{"placement": "crp/<orders>", "cluster": "paris", "asked": r.FormValue("query"), "state": "asked " + r.FormValue("query")}
			now := float64(time.Now().Unix())
			data = map[string]any{"resultType": "matrix", "result": []any{map[string]any{"metric": labels, "values": []any{[]any{now - 1, "2"}, []any{now, "3"}}}}}
		default:
			http.NotFound(w, r)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}) //nolint:errcheck // the client sees it
	}))
	t.Cleanup(server.Close)
	return server
}

func dashboardsOf(t *testing.T, prometheus string) *httptest.Server {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	source, err := picture.NewSource(prometheus)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(dashboardServer{filepath.Join(root, "deploy", "grafana"), source, time.Now()}.handler())
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// Each dashboard is a page that draws Prometheus' data, for the value of its variable that
// the address names, or else for the first.
func TestDashboards(t *testing.T) {
	server := dashboardsOf(t, answering(t).URL)
	for _, page := range dashboardPages {
		code, body := get(t, server.URL+"/"+page.name)
		for _, want := range []string{`class="current">` + page.title, "<svg", "</html>"} {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %q in\n%.600s", page.name, code, want, body)
			}
		}
	}
	for query, shown := range map[string]string{"": "crp/&lt;orders&gt;", "?placement=crp/shop": "crp/shop", "?placement=none": "crp/&lt;orders&gt;"} {
		_, body := get(t, server.URL+"/"+query)
		if query != "" {
			_, body = get(t, server.URL+"/rollout"+query)
		}
		if !strings.Contains(body, `class="current">`+shown) || !strings.Contains(body, "placement=&#34;"+shown) {
			t.Errorf("%q: %s is not shown in\n%.600s", query, shown, body)
		}
		if strings.Contains(body, "<orders>") {
			t.Errorf("%q: a label is not escaped in\n%s", query, body)
		}
	}
}

// Without Prometheus there is an error, and no empty page.
func TestDashboardsWithoutPrometheus(t *testing.T) {
	gone := answering(t)
	gone.Close()
	if code, body := get(t, dashboardsOf(t, gone.URL).URL+"/rollout"); code != http.StatusBadGateway || !strings.Contains(body, "The dashboard cannot be drawn:") {
		t.Errorf("%d %s", code, body)
	}
}
