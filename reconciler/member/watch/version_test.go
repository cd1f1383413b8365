package watch

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A list that is older than an earlier one of the kind shows a restore, if a second request confirms it.
func TestOlderListShowsRestore(t *testing.T) {
	for name, test := range map[string]struct {
		versions []string // of the answers; the last one is repeated
		restored bool
	}{
		"older":             {[]string{"222", "207"}, true},
		"newer":             {[]string{"207", "222"}, false},
		"equal":             {[]string{"222"}, false},
		"stale, once":       {[]string{"222", "207", "222"}, false},
		"no numbers":        {[]string{"zz", "aa"}, false},
		"then no number":    {[]string{"222", "aa"}, false},
		"of fewer digits":   {[]string{"1000", "999"}, true},
		"not confirmable":   {[]string{"222", "207", ""}, false},
		"no number between": {[]string{"222", "aa", "207"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			w := setOf(t, &rest.Config{Host: "https://server.example", Transport: apiserver.RoundTrip(func(r *http.Request) (*http.Response, error) {
				version := test.versions[min(asked, len(test.versions)-1)]
				asked++
				body := fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":%q},"items":[]}`, version)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})})
			k := NewKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, configMapKind)
			for range 2 {
				if _, err := w.list(t.Context(), k); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.Changes.Restored(); (got != "") != test.restored {
				t.Errorf("restored: %q, want %t", got, test.restored)
			}
		})
	}
}
