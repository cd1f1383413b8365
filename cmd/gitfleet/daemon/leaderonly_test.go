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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
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
		srv, _, record, err := newServer(t.Context(), cfg, &gitsource.Repo{}, store, prometheus.NewRegistry(), newMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), pullRequests{wake: func() { woken++ }})
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

// A standby refuses to plan a pull request, and does not wait until it is the leader.
func TestAReplicaThatStandsByPlansNoPullRequest(t *testing.T) {
	srv := server.New(prometheus.NewRegistry())
	servePlans(srv, func() error { return errors.New("this replica stands by: one leads") }, func(ctx context.Context, _ int64) (*review.Preview, error) {
		t.Error("it was planned")
		return nil, ctx.Err()
	})
	answer := httptest.NewRecorder()
	srv.Guarded().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/plan?pullRequest=1", nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "one leads") {
		t.Errorf("answered %d: %s", answer.Code, answer.Body)
	}
}

// A path that only the leader answers says on others why, and has a code for each other reason.
func TestServeLeader(t *testing.T) {
	for name, test := range map[string]struct {
		objection error
		value     any
		code      int
		err       error
		want      string
	}{
		"the leader":    {nil, map[string]int{"n": 1}, http.StatusOK, nil, "200 {\"n\":1}\n"},
		"a standby":     {errors.New("one leads"), nil, http.StatusOK, nil, "503 one leads\n"},
		"nothing there": {nil, nil, http.StatusNotFound, errors.New("no such thing"), "404 no such thing\n"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := server.New(prometheus.NewRegistry())
			serveLeader(srv, "GET /thing", func() error { return test.objection }, func(*http.Request) (any, int, error) { return test.value, test.code, test.err })
			answer := httptest.NewRecorder()
			srv.Guarded().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/thing", nil))
			if got := fmt.Sprint(answer.Code, " ", answer.Body); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
