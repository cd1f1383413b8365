package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/gitsource/webhook"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/server/access"
	"github.com/gitfleet/gitfleet/reconciler/server/kubeapi"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// pullRequests has the functions of the proposer, the reviewer and the loop that a server needs.
type pullRequests struct {
	// approve carries out an approval that a Kubernetes client writes.
	approve kubeapi.Approve
	wake    func()
	// problems lists what cannot be done on the forge.
	problems func() []string
}

// A serverSetup has what a server needs.
type serverSetup struct {
	cfg      settings.Config
	repo     *gitsource.Repo
	ledgers  ledger.Archive
	registry *server.Registry
	metrics  *metrics
	pulls    pullRequests
	log      *slog.Logger
}

// open returns a server with access control and with all paths that need no loop, the function
// that publishes reports, and the history. Webhooks of pull requests wake the proposer and the
// reviewer.
func (s serverSetup) open(ctx context.Context) (srv *server.Server, publish func(*status.Report), record *history.Record, err error) {
	srv = server.New(s.registry)
	srv.LimitConnections(s.cfg.Server.MaxConnections)
	srv.Mount("GET /state", server.StateHandler(s.ledgers.Export))
	overview.Serve(srv, func() (gitsource.Status, []gitsource.Step) { return s.repo.Status(), s.repo.Steps() }, s.pulls.problems)
	if publish, err = serveKube(ctx, s.cfg, srv, s.pulls.approve); err != nil {
		return nil, nil, nil, err
	}
	if err := s.mountWebhook(srv); err != nil {
		return nil, nil, nil, err
	}
	return srv, publish, openHistory(s.cfg, srv, s.metrics.history, s.log), nil
}

// serveKube makes the server serve the Kubernetes API too and check access, and returns the
// function with which reports are published.
func serveKube(ctx context.Context, c settings.Config, srv *server.Server, approve kubeapi.Approve) (func(*status.Report), error) {
	guard, err := access.New(ctx, c.AccessConfig())
	if err != nil {
		return nil, err
	}
	kube, err := kubeapi.New(kubeapi.Config{Store: store.New(time.Now()), Authorizer: guard.Authorizer(), Approve: approve, Local: server.LocalOnly, ApprovalsInGit: c.Rollout.InGit()})
	if err != nil {
		return nil, err
	}
	for _, path := range kubeapi.Paths() {
		srv.Mount(path, kube)
	}
	srv.Protect(guard.TLS(), func(h http.Handler) http.Handler { return guard.Wrap(h, kubeapi.Serves) })
	return func(r *status.Report) {
		srv.Publish(r)
		kube.Publish(r)
	}, nil
}

// openHistory opens the history, and makes the server serve it.
func openHistory(c settings.Config, srv *server.Server, metrics *history.Metrics, log *slog.Logger) *history.Record {
	r := history.Open(history.Config{
		Dir: filepath.Join(c.StateDir, "history"), MaxSize: int64(c.History.MaxSize), Log: log, Metrics: metrics,
	})
	srv.Mount("GET /history", server.HistoryHandler(r))
	return r
}

// runHistory runs a history. The returned function ends it and waits until all entries are
// written; it must be called after everything that adds entries has ended.
func runHistory(r *history.Record) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// webhookPath is the path to which forges send webhooks.
const webhookPath = "/webhook"

// mountWebhook makes webhooks that are signed with the secret wake the repository. Without a
// secret nothing is mounted. The secret is read at each request. If it cannot be read at the
// start, that is an error, since nobody would notice it later.
func (s serverSetup) mountWebhook(srv *server.Server) error {
	source := remote.SecretSource{File: s.cfg.Webhook.SecretFile, Env: s.cfg.Webhook.SecretEnv}
	if source.IsZero() {
		return nil
	}
	if _, err := source.Read(os.Getenv); err != nil {
		return fmt.Errorf("read the secret of the webhook: %w", err)
	}
	wakePullRequests := s.pulls.wake
	if !s.cfg.AsksForge() && !s.cfg.PullRequests.Enabled() {
		wakePullRequests = nil
	}
	srv.Mount(webhookPath, webhook.New(webhook.Config{
		Secret: func() (string, error) {
			secret, err := source.Read(os.Getenv)
			return secret.Reveal(), err
		},
		Wake: s.repo.RequestPoll, Follows: s.cfg.GitConfig(s.log).Ref.Follows, WakePullRequests: wakePullRequests, FollowsIssue: proposal.IsIssueOfDrift,
		Received: func(result string) {
			s.metrics.webhooks.WithLabelValues(result).Inc()
			s.log.Debug("webhook", "result", result)
		},
	}))
	return nil
}
