package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/webhook"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// webhookPath is where forges send their webhooks.
const webhookPath = "/webhook"

// mount lets webhooks wake the repository, if there is a secret to know them
// by. A secret that cannot be read at the start is an error, since nobody would
// notice otherwise; later it is read again at each request.
func (w WebhookConfig) mount(srv *server.Server, repo *gitsource.Repo, follows func(ref string) bool, wakePullRequests func(), received *prometheus.CounterVec, log *slog.Logger) error {
	source := secret(w.SecretFile, w.SecretEnv)
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
		Wake: repo.Nudge, Follows: follows, WakePullRequests: wakePullRequests,
		Received: func(result string) {
			received.WithLabelValues(result).Inc()
			log.Debug("webhook", "result", result)
		},
	}))
	return nil
}
