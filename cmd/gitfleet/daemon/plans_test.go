package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// A webhook about a pull request wakes the proposer and the reviewer, whatever the drift mode
// is.
func TestWebhooksWakeWhoLooksAtPullRequests(t *testing.T) {
	for kind, want := range map[string]int{"": 0, string(forge.GitLab): 1} {
		cfg := settings.Default()
		cfg.StateDir, cfg.Forge.Type = t.TempDir(), kind
		cfg.Webhook.SecretFile = tempfile.Write(t, "webhook", "of the forge\n")
		store, err := ledger.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		woken := 0
		srv, _, record, err := serverSetup{
			cfg, &gitsource.Repo{}, store, server.NewRegistry(), newMetrics(&recorder{}, nil), pullRequests{wake: func() { woken++ }}, slog.New(slog.DiscardHandler),
		}.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer runHistory(record)()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://gitfleet.example/webhook", strings.NewReader(`{"object_kind":"merge_request"}`))
		req.Header.Set("X-Gitlab-Event", "Merge Request Hook")
		req.Header.Set("X-Gitlab-Token", "of the forge")
		srv.Guarded().ServeHTTP(httptest.NewRecorder(), req)
		if woken != want {
			t.Errorf("forge %q: woken %d times", kind, woken)
		}
	}
}

// What the daemon says of pull requests and held changes, or why it does not.
func TestPlansAndProposals(t *testing.T) {
	fails := func(context.Context, int64) (*review.Preview, error) { return nil, errors.New("no such pull request") }
	for name, test := range map[string]struct {
		preview func(context.Context, int64) (*review.Preview, error)
		path    string
		want    string
	}{
		"no number":          {fails, "/plan?pullRequest=abc", "400 pullRequest: must be the number of a pull request\n"},
		"no plans":           {nil, "/plan?pullRequest=1", "404 the daemon does not plan pull requests: set pullRequests.plans\n"},
		"a plan that fails":  {fails, "/plan?pullRequest=1", "422 no such pull request\n"},
		"proposals, at once": {nil, "/proposals", "503 it is not known yet what is held: the daemon is starting\n"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := server.New(server.NewRegistry())
			servePlans(srv, test.preview)
			serveProposals(srv, func() *proposal.HeldList { return nil })
			answer := httptest.NewRecorder()
			srv.Guarded().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
			if got := fmt.Sprint(answer.Code, " ", answer.Body); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	srv := server.New(server.NewRegistry())
	serveProposals(srv, func() *proposal.HeldList { return &proposal.HeldList{} })
	answer := httptest.NewRecorder()
	srv.Guarded().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/proposals", nil))
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answered %d: %s", answer.Code, answer.Body)
	}
}
