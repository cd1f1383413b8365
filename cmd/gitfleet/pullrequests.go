package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// PullRequestsConfig configures plans and statuses on the forge.
type PullRequestsConfig struct {
	Plans         bool   `json:"plans,omitempty"`
	RolloutStatus bool   `json:"rolloutStatus,omitempty"`
	ForksLabel    string `json:"forksLabel,omitempty"`
	DryRun        bool   `json:"dryRun,omitempty"`
}

func (p *PullRequestsConfig) settings() []setting {
	return []setting{
		{"pullRequests.plans", &p.Plans, "write the plan of each open pull request into a comment and the commit status gitfleet/plan"},
		{"pullRequests.dryRun", &p.DryRun, "with plans, ask some of the members by a server-side dry run what they would make of the objects; not for pull requests of forks"},
		{"pullRequests.rolloutStatus", &p.RolloutStatus, "show on the commits of the branch how far they are rolled out, as the commit status gitfleet/rollout"},
		{"pullRequests.forksLabel", &p.ForksLabel, "label with which a maintainer has the pull request of a fork planned; none of a fork is if it is not set, nor on Gitea"},
	}
}

func (p *PullRequestsConfig) enabled() bool { return p.Plans || p.RolloutStatus }

func (c Config) validatePullRequests() []error {
	var errs []error
	if c.PullRequests.DryRun && !c.PullRequests.Plans {
		errs = append(errs, c.fault("pullRequests.dryRun", "is a part of the plans: set pullRequests.plans as well"))
	}
	if !c.PullRequests.enabled() {
		return errs
	}
	if c.PullRequests.ForksLabel != "" && c.forge().Type == forge.Gitea {
		errs = append(errs, c.fault("pullRequests.forksLabel", "has no effect on Gitea, where anybody can set the labels of a pull request that they open: remove it"))
	}
	switch {
	case c.Source.Branch == "":
		return append(append(errs, c.validateForge()...), c.fault("source.branch", "pullRequests are those to a branch: name it"))
	case c.Drift.proposes():
		return errs // the forge is validated with it
	}
	return append(errs, c.validateForge()...)
}

// planPause is the time between two plans of pull requests, which bounds the load of many of
// them.
const planPause = 5 * time.Second

// reviewer returns the reviewer of pull requests; nil if it is not configured.
func (c Config) reviewer(repo *gitsource.Repo, f *forge.Shared, try func(context.Context, review.Trial) ([]member.Change, error), log *slog.Logger) *review.Reviewer {
	if !c.PullRequests.enabled() {
		return nil
	}
	if !c.PullRequests.DryRun {
		try = nil
	}
	begin := reconciler.Attempts(filepath.Join(c.StateDir, "planning.json"), log)
	return review.New(review.Config{
		Forge: f, Source: repo, Loader: c.loader(), Try: try, Brake: c.Members.brake(), Fleet: c.FleetName, Base: c.Source.Branch,
		Plans: c.PullRequests.Plans, Rollouts: c.PullRequests.RolloutStatus, ForksLabel: c.PullRequests.ForksLabel,
		OpenLabels: c.forge().Type == forge.Gitea,
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

// try asks a member by a dry run, through a connection that cannot write.
func (m *members) try(ctx context.Context, t review.Trial) ([]member.Change, error) {
	name, kubeContext := t.Cluster.Name, t.Cluster.Annotations[api.ContextAnnotation]
	p, _, err := member.Peek(ctx, member.Config{
		Name: name, Fleet: m.cfg.FleetName, Encoder: m.encoder, Log: quiet,
		Connect: func(ctx context.Context) (*rest.Config, error) { return m.credentials.Config(ctx, name, kubeContext) },
		Brake:   m.cfg.Members.brake(), Concurrency: m.cfg.Members.Concurrency, Timeout: m.cfg.Members.Timeout.Duration,
	})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Try(ctx, t.Works, t.Targets)
}
