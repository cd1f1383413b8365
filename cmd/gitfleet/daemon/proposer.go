package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// newProposer returns the proposer, which decides about held drift, and offers it as pull
// requests and issues if a forge is configured. Nothing is pushed while mayWrite returns an
// error.
func newProposer(c settings.Config, repo *gitsource.Repo, f *forge.Shared, mayWrite func() error, resolve func(map[string]ledger.Resolutions), record func(...history.Entry), log *slog.Logger) (*proposal.Proposer, error) {
	loader := c.Loader() // edits are verified while the loop may be loading the next commit
	cfg := proposal.Config{
		Fleet: c.FleetName, Base: c.Source.Branch, MinAge: c.Drift.MinAge.Duration, MaxOpen: c.Drift.MaxOpen, Interval: max(time.Second, c.Forge.Interval.Duration),
		Files:    func(ctx context.Context, commit string) (fs.FS, error) { return repo.Files(ctx, commit) },
		Load:     func(files fs.FS) (*hub.Snapshot, error) { return loader.Load(hub.Commit{}, files) },
		Contains: repo.Contains, Resolve: resolve, Record: record, Log: log,
	}
	if !c.AsksForge() {
		return proposal.New(cfg), nil
	}
	cfg.Forge = f
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
	auth := remote.Auth{Token: remote.SecretSource{File: c.Forge.TokenFile, Env: c.Forge.TokenEnv}}
	if strings.HasPrefix(f.URL, "https://") {
		auth.CABundle = f.CABundle
	}
	if f.Type == forge.GitLab {
		auth.Username = "oauth2"
	}
	return repo.Publisher(gitsource.Config{
		URL: strings.TrimSuffix(f.URL, "/") + "/" + f.Repository + ".git", Auth: auth, AllowHTTP: c.Source.AllowHTTP, Logger: log, Getenv: os.Getenv,
	}, c.Forge.SigningKeyFile)
}

// fanOut returns a function that calls two functions with each report.
func fanOut(one, other func(*status.Report)) func(*status.Report) {
	return func(r *status.Report) {
		one(r)
		other(r)
	}
}
