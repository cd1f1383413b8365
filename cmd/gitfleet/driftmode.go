package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The drift modes.
const (
	revertDrift  = string(api.DriftRevert)
	proposeDrift = string(api.DriftPropose)
	reportDrift  = string(api.DriftReport)
)

// DriftConfig configures how drift on members is handled.
type DriftConfig struct {
	Mode    string          `json:"mode,omitempty"`
	Kinds   kindModes       `json:"kinds,omitempty"`
	MinAge  metav1.Duration `json:"minAge,omitzero"`
	MaxOpen int             `json:"maxOpen,omitempty"`
}

// ForgeConfig configures the forge on which pull requests are opened.
type ForgeConfig struct {
	Type       string `json:"type,omitempty"`
	URL        string `json:"url,omitempty"`
	Repository string `json:"repository,omitempty"`
	TokenFile  string `json:"tokenFile,omitempty"`
	TokenEnv   string `json:"tokenEnv,omitempty"`
	// SigningKeyFile is the private key that signs commits of gitfleet.
	SigningKeyFile string `json:"signingKeyFile,omitempty"`
	// Interval is the time between two looks at open pull requests.
	Interval metav1.Duration `json:"interval,omitzero"`
}

func (d *DriftConfig) settings() []setting {
	return []setting{
		{"drift.mode", &d.Mode, "what is done about what others change: revert puts it back, propose leaves it and offers it as a pull request, report leaves it"},
		{"drift.kinds", &d.Kinds, "drift modes of kinds, as a mapping of KIND or GROUP/KIND to the mode, such as Secret: revert; with --set as KIND=MODE, may be repeated"},
		{"drift.minAge", &d.MinAge, "how long a change has to last before it is offered as a pull request"},
		{"drift.maxOpen", &d.MaxOpen, "how many pull requests of drifts are open at once"},
	}
}

func (f *ForgeConfig) settings() []setting {
	return []setting{
		{"forge.type", &f.Type, "what the forge is: gitea (Forgejo too), github or gitlab; known of github.com, ghe.com and gitlab.com"},
		{"forge.url", &f.URL, "where the forge is, such as https://git.example.com; from source.url if that is https:// and this is not set"},
		{"forge.repository", &f.Repository, "repository as OWNER/NAME, on GitLab also GROUP/SUBGROUP/NAME; from source.url if that is https:// and this is not set"},
		{"forge.tokenFile", &f.TokenFile, "file with an access token that may write to the repository and its pull requests"},
		{"forge.tokenEnv", &f.TokenEnv, "environment variable with such a token"},
		{"forge.signingKeyFile", &f.SigningKeyFile, "file with an OpenPGP or SSH private key, without a passphrase, that signs the commits of pull requests"},
		{"forge.interval", &f.Interval, "time between two looks at open pull requests"},
	}
}

func (c Config) validateDrift() []error {
	var errs []error
	if !isDriftMode(c.Drift.Mode) {
		errs = append(errs, c.fault("drift.mode", fmt.Sprintf("%q is none of revert, propose, report", c.Drift.Mode)))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Drift.Kinds)) {
		if err := validateKindMode(kind, c.Drift.Kinds[kind]); err != nil {
			errs = append(errs, c.fault("drift.kinds."+kind, err.Error()))
		}
	}
	if len(errs) > 0 || !c.asksForge() {
		return errs
	}
	if c.Source.Branch == "" {
		errs = append(errs, c.fault("source.branch", "pull requests of drift are opened to a branch: name it"))
	}
	return append(errs, c.validateForge()...)
}

func (c Config) validateForge() []error {
	var errs []error
	if !slices.Contains(forge.Types, c.forge().Type) {
		errs = append(errs, c.fault("forge.type", fmt.Sprintf("%q is none of gitea, github, gitlab", c.Forge.Type)))
	}
	if (c.Forge.TokenFile == "") == (c.Forge.TokenEnv == "") {
		errs = append(errs, c.fault("forge.tokenFile", "set one of tokenFile and tokenEnv"))
	}
	if c.Forge.Interval.Duration < time.Second {
		errs = append(errs, c.fault("forge.interval", fmt.Sprintf("must be at least 1s, is %s", c.Forge.Interval.Duration)))
	}
	f := c.forge()
	if err := f.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("forge.%w", err))
	}
	if strings.HasPrefix(f.URL, "http://") && !c.Source.AllowHTTP {
		errs = append(errs, c.fault("forge.url", "must be https://, since a token is sent; source.allowHTTP allows http://"))
	}
	return errs
}

// forge is the repository on its forge, by the address of the source where nothing else
// is set.
func (c Config) forge() forge.Config {
	f := forge.Config{Type: forge.Type(c.Forge.Type), URL: c.Forge.URL, Repository: c.Forge.Repository, CABundle: c.Source.CABundle}
	if u, err := url.Parse(c.Source.URL); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		if f.URL == "" {
			f.URL = u.Scheme + "://" + u.Host
		}
		if f.Repository == "" {
			f.Repository = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
		}
	}
	if f.Type == "" {
		f.Type = forge.TypeAt(f.URL)
	}
	token := secret(c.Forge.TokenFile, c.Forge.TokenEnv)
	f.Token = func() (string, error) {
		s, err := token.Read(os.Getenv)
		return s.Reveal(), err
	}
	return f
}

// proposer decides about drift that is held, and offers it as pull requests if a forge is
// configured. Nothing is pushed while mayWrite returns an error.
func (c Config) proposer(repo *gitsource.Repo, f *forge.Shared, mayWrite func() error, resolve func(map[string]ledger.Resolutions), log *slog.Logger) (*proposal.Proposer, error) {
	loader := c.loader() // edits are tried while the loop loads the next commit
	cfg := proposal.Config{
		Fleet: c.FleetName, Base: c.Source.Branch, MinAge: c.Drift.MinAge.Duration, MaxOpen: c.Drift.MaxOpen, Interval: max(time.Second, c.Forge.Interval.Duration),
		Files:    func(ctx context.Context, commit string) (fs.FS, error) { return repo.Files(ctx, commit) },
		Load:     func(files fs.FS) (*hub.Snapshot, error) { return loader.Load(hub.Commit{}, files) },
		Contains: repo.Contains, Resolve: resolve, Log: log,
	}
	if !c.asksForge() {
		return proposal.New(cfg), nil
	}
	cfg.Forge = f
	branches, err := c.branches(repo, log)
	if err != nil {
		return nil, fmt.Errorf("forge: %w", err)
	}
	cfg.Branches = fencedBranches{branches, mayWrite}
	return proposal.New(cfg), nil
}

// sharedForge is the forge of the proposer and of the reviewer, of which nothing is asked while
// mayWrite returns an error; nil if neither looks at it.
func (c Config) sharedForge(mayWrite func() error) (*forge.Shared, error) {
	if !c.asksForge() && !c.PullRequests.enabled() {
		return nil, nil
	}
	client, err := forge.New(c.fencedForge(mayWrite))
	if err != nil {
		return nil, fmt.Errorf("forge: %w", err)
	}
	return forge.Share(client, c.Forge.Interval.Duration), nil
}

// asksForge reports whether the daemon looks at pull requests.
func (c Config) asksForge() bool { return c.Drift.proposes() || c.Forge.Type != "" }

// branches pushes to the repository on the forge, with the token of the forge.
func (c Config) branches(repo *gitsource.Repo, log *slog.Logger) (*gitsource.Publisher, error) {
	f := c.forge()
	auth := gitsource.Auth{Token: secret(c.Forge.TokenFile, c.Forge.TokenEnv)}
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

// both calls two functions with each report.
func both(one, other func(*status.Report)) func(*status.Report) {
	return func(r *status.Report) {
		one(r)
		other(r)
	}
}
