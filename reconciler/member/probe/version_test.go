package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A cluster counts as restored if every consistent read shows a lower resource version than one that was
// known of the same cluster. What may be stale, is of another cluster or is no number shows nothing.
func TestLowerVersionShowsRestore(t *testing.T) {
	const uid = "uid-1"
	tests := map[string]struct {
		known    uint64
		versions []string // of the answers; the last one is repeated
		uid      string
		restored bool
	}{
		"lower":                          {222, []string{"207"}, uid, true},
		"lower, and growing":             {222, []string{"207", "208", "221"}, uid, true},
		"equal":                          {222, []string{"222"}, uid, false},
		"higher":                         {222, []string{"223"}, uid, false},
		"one answer was stale":           {222, []string{"207", "223"}, uid, false},
		"some answers were stale":        {222, []string{"207", "207", "222"}, uid, false},
		"nothing known":                  {0, []string{"207"}, uid, false},
		"no number":                      {222, []string{"opaque"}, uid, false},
		"then no number":                 {222, []string{"207", "opaque"}, uid, false},
		"no version":                     {222, []string{""}, uid, false},
		"more digits than a version has": {222, []string{"99999999999999999999999"}, uid, false},
		"another cluster":                {222, []string{"207"}, "uid-2", false},
		"of several digits":              {1000, []string{"999"}, uid, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				pr := proberInMemory(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/api/v1/namespaces" {
						fmt.Fprint(w, "{}")
						return
					}
					if r.URL.Query().Has("resourceVersion") {
						t.Errorf("request %s may be answered from a cache", r.URL)
					}
					version := test.versions[min(lists, len(test.versions)-1)]
					lists++
					fmt.Fprintf(w, `{"metadata":{"resourceVersion":%q},"items":[{"metadata":{"name":"kube-system","uid":%q}}]}`, version, test.uid)
				})
				pr.uid, pr.version = uid, test.known
				p := pr.Probe(t.Context(), true)
				if got := p.Restored != ""; got != test.restored {
					t.Errorf("restored: %q, want %t", p.Restored, test.restored)
				}
				if again := pr.Probe(t.Context(), true); again.Restored != "" && len(test.versions) == 1 {
					t.Errorf("said again: %s", again.Restored)
				}
			})
		})
	}
}

// A probe without an observation compares the version only after something that a restore would cause
// too, so that a probe of an idle cluster stays one request.
func TestVersionIsComparedWhenARestoreIsSuspected(t *testing.T) {
	synctest.Test(t, testVersionIsComparedWhenARestoreIsSuspected)
}

func testVersionIsComparedWhenARestoreIsSuspected(t *testing.T) {
	lists, down := 0, false
	pr := proberInMemory(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/api/v1/namespaces":
			lists++
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"300"},"items":[]}`)
		}
	})
	probes := func(want int, when string) {
		t.Helper()
		lists = 0
		for range 3 {
			pr.Probe(t.Context(), false)
		}
		if lists != want {
			t.Errorf("%s: %d lists, want %d", when, lists, want)
		}
	}
	probes(0, "idle")
	pr.SuspectRestore()
	probes(1, "after a watch was interrupted")
	down = true
	probes(0, "while it is down")
	down = false
	probes(1, "after it was down")
	pr.version = 400
	pr.SuspectRestore()
	start := time.Now()
	if p := pr.Probe(t.Context(), false); p.Restored == "" || time.Since(start) > 10*time.Second {
		t.Errorf("a lower version was not noticed")
	}
}

// proberInMemory returns a prober whose requests are answered without a network, so that a test can
// wait in virtual time.
func proberInMemory(t *testing.T, answer http.HandlerFunc) *Prober {
	t.Helper()
	return proberOf(t, &rest.Config{Host: "http://east", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		answer(w, r)
		return w.Result(), nil
	})})
}
