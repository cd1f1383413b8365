package settings

import "github.com/gitfleet/gitfleet/gitsource/forge"

// PullRequestsConfig configures plans and statuses on the forge.
type PullRequestsConfig struct {
	Plans         bool   `json:"plans,omitempty"`
	RolloutStatus bool   `json:"rolloutStatus,omitempty"`
	ForksLabel    string `json:"forksLabel,omitempty"`
	DryRun        bool   `json:"dryRun,omitempty"`
}

func (p *PullRequestsConfig) settings() []setting {
	return []setting{
		{"pullRequests.plans", &p.Plans, "write the plan of each open pull request into a comment and the commit status gitfleet/plan, or gitfleet/NAME/plan with fleetName"},
		{"pullRequests.dryRun", &p.DryRun, "with plans, ask some of the members by a server-side dry run what they would make of the objects; not for pull requests of forks"},
		{"pullRequests.rolloutStatus", &p.RolloutStatus, "show on the commits of the branch how far they are rolled out, as the commit status gitfleet/rollout, or gitfleet/NAME/rollout with fleetName"},
		{"pullRequests.forksLabel", &p.ForksLabel, "label with which a maintainer has the pull request of a fork planned; none of a fork is if it is not set, nor on Gitea"},
	}
}

// Enabled reports whether the daemon writes anything about pull requests or commits to the forge.
func (p *PullRequestsConfig) Enabled() bool { return p.Plans || p.RolloutStatus }

func (c Config) validatePullRequests() []error {
	var errs []error
	if c.PullRequests.DryRun && !c.PullRequests.Plans {
		errs = append(errs, c.fault("pullRequests.dryRun", "is a part of the plans: set pullRequests.plans as well"))
	}
	if !c.PullRequests.Enabled() {
		return errs
	}
	if c.PullRequests.ForksLabel != "" && c.ForgeConfig().Type == forge.Gitea {
		errs = append(errs, c.fault("pullRequests.forksLabel", "has no effect on Gitea, where anybody can set the labels of a pull request that they open: remove it"))
	}
	switch {
	case c.Source.Branch == "":
		return append(append(errs, c.validateForge()...), c.fault("source.branch", "pullRequests are those to a branch: name it"))
	case c.Drift.proposes():
		return errs // the settings of the forge were validated with it
	}
	return append(errs, c.validateForge()...)
}
