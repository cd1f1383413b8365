package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/approval"
	"github.com/gitfleet/gitfleet/reconciler/command"
	"github.com/gitfleet/gitfleet/reconciler/crashguard"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/review"
)

// newProposer returns the proposer, which decides about held drift, and offers it as pull
// requests and issues if a forge is configured. Nothing is pushed while mayWrite returns an
// error. opened is called after each pull request that was opened.
func newProposer(c settings.Config, repo *gitsource.Repo, remotes settings.Remotes, f *forge.Shared, mayWrite func() error, decided func(map[string]protocol.DriftDecisions), record func(...history.Entry), opened func(), log *slog.Logger) (*proposal.Proposer, error) {
	loader := c.Loader(remotes, log) // edits are verified while the loop may be loading the next commit
	cfg := proposal.Config{
		Fleet: c.FleetName, Base: c.Source.Branch, MinAge: c.Drift.MinAge.Duration, MaxOpen: c.Drift.MaxOpen, ByPlacement: c.Drift.ByPlacement(), ExpireAfter: c.Drift.ExpireAfter.Duration, Interval: max(time.Second, c.Forge.Interval.Duration),
		Files:    func(ctx context.Context, commit string) (fs.FS, error) { return repo.Files(ctx, commit) },
		Load:     func(files fs.FS) (*hub.Snapshot, error) { return loader.Load(hub.Commit{}, files) },
		Contains: repo.Contains, SetDriftDecisions: decided, Record: record, Opened: opened, Log: log,
	}
	if !c.AsksForge() {
		return proposal.New(cfg), nil
	}
	cfg.Undo = func(ctx context.Context, head, later, earlier string) (*gitsource.Undone, error) {
		return gitsource.Undo(ctx, repo, head, later, earlier)
	}
	cfg.Forge, cfg.Reviewers, cfg.OwnersFiles = f, c.Drift.Reviewers, c.ForgeConfig().Type.OwnersFiles()
	branches, err := newPublisher(c, repo, log)
	if err != nil {
		return nil, fmt.Errorf("forge: %w", err)
	}
	cfg.Branches = fencedBranches{branches, mayWrite}
	return proposal.New(cfg), nil
}

// sharedForge returns the forge of the proposer and the reviewer, to which no request is sent
// while mayWrite returns an error; nil if neither uses it.
func sharedForge(c settings.Config, mayWrite func() error) (*forge.Shared, error) {
	if !c.AsksForge() && !c.PullRequests.Enabled() {
		return nil, nil
	}
	client, err := forge.New(fencedForge(c, mayWrite))
	if err != nil {
		return nil, fmt.Errorf("forge: %w", err)
	}
	return forge.Share(client, c.Forge.Interval.Duration), nil
}

// newPublisher returns a publisher that pushes to the repository on the forge, with the token
// of the forge.
func newPublisher(c settings.Config, repo *gitsource.Repo, log *slog.Logger) (*gitsource.Publisher, error) {
	f := c.ForgeConfig()
	auth := remote.Auth{Username: f.Type.PushUser(), Token: remote.SecretSource{File: c.Forge.TokenFile, Env: c.Forge.TokenEnv}}
	if strings.HasPrefix(f.URL, "https://") {
		auth.CABundle = f.CABundle
	}
	return repo.Publisher(gitsource.Config{
		URL: strings.TrimSuffix(f.URL, "/") + "/" + f.Repository + ".git", Auth: auth, AllowHTTP: c.Source.AllowHTTP, Logger: log, Getenv: os.Getenv,
	}, c.Forge.SigningKeyFile)
}

// planPause is the time between two plans of pull requests, which limits the load.
const planPause = 5 * time.Second

// newReviewer returns the reviewer of pull requests; nil if it is not configured. statusFleet is
// the fleet in the names of commit statuses; empty if there is none.
func newReviewer(c settings.Config, repo *gitsource.Repo, remotes settings.Remotes, f *forge.Shared, statusFleet string, try func(context.Context, review.Trial) ([]member.Change, error), log *slog.Logger) *review.Reviewer {
	if !c.PullRequests.Enabled() {
		return nil
	}
	if !c.PullRequests.DryRun {
		try = nil
	}
	guard := crashguard.New(filepath.Join(c.StateDir, "planning.json"), log)
	return review.New(review.Config{
		Forge: f, Source: repo, Loader: c.Loader(remotes, log), FetchBase: remotes.Bases.Fetch, FetchChart: remotes.FetchChart, Try: try, DeletionLimit: c.Members.DeletionLimit(), Fleet: c.FleetName, StatusFleet: statusFleet, Base: c.Source.Branch,
		Plans: c.PullRequests.Plans, Rollouts: c.PullRequests.RolloutStatus, ForksLabel: c.PullRequests.ForksLabel,
		AuthorSetsLabels: c.ForgeConfig().Type.AuthorSetsLabels(),
		Interval:         c.Forge.Interval.Duration, Pause: min(planPause, c.Forge.Interval.Duration), Log: log,
		Attempt: func(commit string) (func(), error) {
			end, err := guard.Begin(commit)
			if err != nil {
				return nil, errors.New("planning it has ended the daemon before, most likely for want of memory; push another commit to have that planned")
			}
			return end, nil
		},
	})
}

// newCommander returns what executes commands in comments on pull requests; nil if no forge is used.
func newCommander(c settings.Config, f *forge.Shared, proposals *proposal.Proposer, reviews *review.Reviewer, approvals *approval.Approver, record func(...history.Entry), log *slog.Logger) *command.Commander {
	if f == nil {
		return nil
	}
	cfg := command.Config{
		Forge: f, Proposals: proposals, Runs: approvals, Fleet: c.FleetName, Base: c.Source.Branch, Record: record,
		Interval: max(time.Second, c.Forge.Interval.Duration), Log: log,
	}
	if reviews != nil && c.PullRequests.Plans {
		cfg.Plans = reviews
	}
	return command.New(cfg)
}

// newApprover returns what approves stages of update runs for reviews of pull requests and comments on them; nil if no forge is used.
func newApprover(c settings.Config, repo *gitsource.Repo, remotes settings.Remotes, f *forge.Shared, decide func(context.Context, approval.Decision) (string, error), log *slog.Logger) *approval.Approver {
	if f == nil {
		return nil
	}
	loader := sync.OnceValue(func() *hub.Loader { return c.Loader(remotes, log) })
	return approval.New(approval.Config{
		Forge: f, Base: c.Source.Branch, Approve: decide, Interval: max(time.Second, c.Forge.Interval.Duration), Log: log,
		Parent: func(ctx context.Context, commit string) (string, error) {
			found, err := repo.Commit(ctx, commit)
			if err != nil || len(found.Parents) == 0 {
				return "", err
			}
			return found.Parents[0], nil
		},
		Content: func(ctx context.Context, commit string, key api.PlacementKey) (string, bool, error) {
			files, err := repo.Files(ctx, commit)
			if err != nil {
				return "", false, err
			}
			snapshot, err := loader().Load(hub.Commit{Hash: commit}, files)
			if err != nil {
				return "", false, err
			}
			source, known := plan.SourceOf(snapshot, key)
			return source.Fingerprint, known, nil
		},
	})
}

// fencedForge returns the configuration of a forge to which no request is sent while mayWrite
// returns an error.
func fencedForge(c settings.Config, mayWrite func() error) forge.Config {
	f := c.ForgeConfig()
	token := f.Token
	f.Token = func() (string, error) {
		if err := mayWrite(); err != nil {
			return "", err
		}
		return token()
	}
	return f
}

// fencedBranches pushes nothing while mayWrite returns an error.
type fencedBranches struct {
	proposal.Branches
	mayWrite func() error
}

// Publish implements proposal.Branches.
func (b fencedBranches) Publish(ctx context.Context, c gitsource.BranchCommit) (gitsource.BranchState, error) {
	if err := b.mayWrite(); err != nil {
		return gitsource.BranchState{}, err
	}
	return b.Branches.Publish(ctx, c)
}

// Remove implements proposal.Branches.
func (b fencedBranches) Remove(ctx context.Context, branch, marker string) error {
	if err := b.mayWrite(); err != nil {
		return err
	}
	return b.Branches.Remove(ctx, branch, marker)
}
