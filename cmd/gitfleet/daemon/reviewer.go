package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// planPause is the time between two plans of pull requests, which limits the load.
const planPause = 5 * time.Second

// newReviewer returns the reviewer of pull requests; nil if it is not configured. statusFleet is
// the fleet in the names of commit statuses; empty if there is none.
func newReviewer(c settings.Config, repo *gitsource.Repo, f *forge.Shared, statusFleet string, try func(context.Context, review.Trial) ([]member.Change, error), log *slog.Logger) *review.Reviewer {
	if !c.PullRequests.Enabled() {
		return nil
	}
	if !c.PullRequests.DryRun {
		try = nil
	}
	begin := reconciler.Attempts(filepath.Join(c.StateDir, "planning.json"), log)
	return review.New(review.Config{
		Forge: f, Source: repo, Loader: c.Loader(), Try: try, Brake: c.Members.Brake(), Fleet: c.FleetName, StatusFleet: statusFleet, Base: c.Source.Branch,
		Plans: c.PullRequests.Plans, Rollouts: c.PullRequests.RolloutStatus, ForksLabel: c.PullRequests.ForksLabel,
		OpenLabels: c.ForgeConfig().Type == forge.Gitea,
		Interval:   c.Forge.Interval.Duration, Pause: min(planPause, c.Forge.Interval.Duration), Log: log,
		Attempt: func(commit string) (func(), error) {
			end, err := begin(commit)
			if err != nil {
				return nil, errors.New("planning it has ended the daemon before, most likely for want of memory; push another commit to have that planned")
			}
			return end, nil
		},
	})
}

// try runs a trial on a member, through a connection that cannot write.
func (m *members) try(ctx context.Context, t review.Trial) ([]member.Change, error) {
	name, kubeContext := t.Cluster.Name, t.Cluster.Annotations[api.ContextAnnotation]
	p, _, err := member.Peek(ctx, member.Config{
		Name: name, Fleet: m.cfg.FleetName, Encoder: m.encoder, Log: slog.New(slog.DiscardHandler),
		Connect: func(ctx context.Context) (*rest.Config, error) { return m.credentials.Config(ctx, name, kubeContext) },
		Brake:   m.cfg.Members.Brake(), Concurrency: m.cfg.Members.Concurrency, Timeout: m.cfg.Members.Timeout.Duration,
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Try(ctx, t.Works, t.Targets)
}
