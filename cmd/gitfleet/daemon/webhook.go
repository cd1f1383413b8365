package daemon

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/gitsource/webhook"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// webhookPath is the path to which forges send webhooks.
const webhookPath = "/webhook"

// mountWebhook makes webhooks that are signed with the secret wake the repository. Without a
// secret nothing is mounted. The secret is read at each request. If it cannot be read at the
// start, that is an error, since nobody would notice it later.
func mountWebhook(w settings.WebhookConfig, srv *server.Server, repo *gitsource.Repo, follows func(ref string) bool, wakePullRequests func(), received *prometheus.CounterVec, log *slog.Logger) error {
	source := remote.SecretSource{File: w.SecretFile, Env: w.SecretEnv}
	if source.IsZero() {
		return nil
	}
	if _, err := source.Read(os.Getenv); err != nil {
		return fmt.Errorf("read the secret of the webhook: %w", err)
	}
	srv.Mount(webhookPath, webhook.New(webhook.Config{
		Secret: func() (string, error) {
			s, err := source.Read(os.Getenv)
			return s.Reveal(), err
		},
		Wake: repo.Nudge, Follows: follows, WakePullRequests: wakePullRequests, FollowsIssue: proposal.IsIssueOfDrift,
		Received: func(result string) {
			received.WithLabelValues(result).Inc()
			log.Debug("webhook", "result", result)
		},
	}))
	return nil
}
