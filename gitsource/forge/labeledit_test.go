package forge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// An edit of labels changes neither the title nor the body, which may be those of somebody else.
func TestAnEditOfLabelsChangesNothingElse(t *testing.T) {
	for kind, want := range map[forge.Type]string{
		forge.GitHub: "DELETE /api/v3/repos/org/fleet/issues/7/labels/plan ",
		forge.GitLab: `PUT /api/v4/projects/org%2Ffleet/merge_requests/7 {"remove_labels":"plan"}`,
	} {
		var mu sync.Mutex
		var sent []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, r.Method+" "+r.URL.EscapedPath()+" "+strings.TrimSpace(string(body)))
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodDelete {
				io.WriteString(w, "[]")
			} else {
				io.WriteString(w, "{}")
			}
		}))
		defer server.Close()
		client := newClient(t, kind, server.URL, "org/fleet", "token")
		if err := client.Edit(t.Context(), forge.Thread{Number: 7}, forge.Edit{RemoveLabels: []string{"plan"}}); err != nil {
			t.Error(kind, err)
		}
		if len(sent) != 1 || sent[0] != want {
			t.Errorf("%s was sent %q, want %q", kind, sent, want)
		}
	}
}
