package daemon

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/reports"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// answering returns a server with all handlers of a daemon with this configuration.
func answering(t *testing.T, cfg settings.Config) *server.Server {
	t.Helper()
	cfg.StateDir = t.TempDir()
	store, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	srv, publish, record, err := serverSetup{
		cfg, &gitsource.Repo{}, store, server.NewRegistry(), newMetrics(&recorder{}, nil), pullRequests{}, slog.New(slog.DiscardHandler),
	}.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runHistory(record))
	(&orders{}).mount(srv)
	srv.MountTrace(nil)
	srv.MountContains(nil)
	servePlans(srv, nil)
	serveProposals(srv, func() *proposal.HeldList { return nil })
	publish(reports.Sample())
	return srv
}

// All paths of the daemon require authentication, except those for its health and those whose
// requests are signed.
func TestEveryPathAsksWhoAsks(t *testing.T) {
	const token = "4c1b0a9f8e7d6c5b4a39"
	cfg := settings.Default()
	cfg.Server.CertFile, cfg.Server.KeyFile = tempfile.Certificate(t)
	cfg.Server.TokenFile = tempfile.Write(t, "tokens", token+",alice\n")
	cfg.Webhook.SecretFile = tempfile.Write(t, "webhook", "of the forge\n")
	srv := answering(t, cfg)
	handler := srv.Guarded()
	ask := func(pattern, credential string) (code int, refused bool) {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = "", pattern
		}
		req := httptest.NewRequestWithContext(t.Context(), cmp.Or(method, http.MethodGet), "https://gitfleet.example"+path, nil)
		if credential != "" {
			req.Header.Set("Authorization", "Bearer "+credential)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		return answer.Code, answer.Code == http.StatusUnauthorized && strings.HasPrefix(answer.Body.String(), "authentication required")
	}
	patterns := srv.Patterns()
	for _, pattern := range []string{
		"GET /report", "GET /state", "GET /history", "GET /overview", "GET /metrics", "POST /actions/suspend", "POST /actions/sync", "/apis/",
	} {
		if !slices.Contains(patterns, pattern) {
			t.Errorf("%s is not answered: %s", pattern, patterns)
		}
	}
	open := []string{"GET /healthz", "GET /readyz", "/webhook"}
	for _, pattern := range patterns {
		isOpen := slices.Contains(open, pattern)
		if code, refused := ask(pattern, ""); refused == isOpen {
			t.Errorf("%s without a token: %d", pattern, code)
		}
		if code, refused := ask(pattern, token+"0"); refused == isOpen {
			t.Errorf("%s with a wrong token: %d", pattern, code)
		}
		if code, refused := ask(pattern, token); refused || code == http.StatusForbidden {
			t.Errorf("%s with the token: %d", pattern, code)
		}
	}
}
