package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewRollback returns the command rollback.
func NewRollback() *cobra.Command {
	var r rollback
	cmd := &cobra.Command{
		Use:   "rollback PLACEMENT",
		Short: "Create a branch that reverts a placement to a good revision",
		Long: `Create a commit that reverts a placement to the last commit whose content was
available on all of its clusters, or to the one of --to. The commit is on a new
branch; open a pull request for it. The branch that the daemon follows and the
files in your checkout are not changed.

Reverted are the manifests of the placement, of what it selects, and of its
overrides. Files that other placements or MemberClusters use as well are
reverted only with --include-shared. With --push the branch is pushed with the
credentials of the configuration, which must be allowed to write.`,
		Example: `  gitfleet rollback crp/web
  gitfleet rollback crp/web --path fleet/hub --branch back-to-green
  gitfleet rollback crp/web --push --config gitfleet.yaml
  gitfleet rollback rp/shop/web --to 1a2b3c4 --base origin/main`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if r.key, err = r.placement(cmd.Context(), args[0]); err != nil {
				return err
			}
			r.name = r.key.String()
			return r.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	r.at.Bind(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&r.path, "path", ".", "directory of the hub in a clone of the repository")
	f.StringVar(&r.branch, "branch", "", "name of the new branch (default gitfleet/rollback-…)")
	f.StringVar(&r.to, "to", "", "commit to revert to, instead of the last one that was available on every cluster")
	f.StringVar(&r.base, "base", "", "commit to start from, instead of the newest that the daemon follows")
	f.StringVar(&r.author, "author", "", "author of the commit, as \"NAME <ADDRESS>\"; by default the Git user of the clone")
	f.BoolVar(&r.shared, "include-shared", false, "also revert files that other placements or MemberClusters use")
	f.BoolVar(&r.push, "push", false, "push the branch to the repository of the configuration")
	f.StringVar(&r.at.Config, "config", "", "the daemon's configuration, for --push")
	return cmd
}

// A rollback has the arguments of the command, and what is derived from them.
type rollback struct {
	at           client.Connection
	name         string // the name of the placement
	key          api.PlacementKey
	path, branch string
	to, base     string
	author       string
	shared, push bool

	clone     *gitsource.Clone
	from, now gitsource.Commit
	follows   string // the tracked branch, if it is known
	proven    bool
	loader    *hub.Loader
	target    plan.PlacementSource // the placement at the commit to revert to
}

// placement returns the key of a placement. For a partial name it sends a request to the
// daemon.
func (r *rollback) placement(ctx context.Context, text string) (api.PlacementKey, error) {
	if key, err := api.ParsePlacement(text); err == nil {
		return key, nil
	}
	c, err := r.at.Client()
	if err != nil {
		return api.PlacementKey{}, err
	}
	name, err := c.Placement(ctx, text)
	if err != nil {
		return api.PlacementKey{}, err
	}
	return api.ParsePlacement(name)
}

func (r *rollback) run(ctx context.Context, out io.Writer) error {
	if r.push && r.at.Config == "" {
		return errors.New("--push needs --config, the daemon's configuration with the repository and its credentials; without --push the branch is created in the clone, and you push it yourself")
	}
	if err := r.find(ctx); err != nil {
		return err
	}
	made, paths, err := r.make()
	if err != nil {
		return err
	}
	if err := r.clone.Branch(r.branch, made.Hash); err != nil {
		return err
	}
	next := fmt.Sprintf("push it with \"git push origin %s\", then ", r.branch)
	if r.push {
		if err := r.pushTo(ctx, made.Hash); err != nil {
			return fmt.Errorf("%w\nThe branch is in the clone: push it with \"git push origin %s\"", err, r.branch)
		}
		next = "pushed; "
	}
	fmt.Fprintf(out, "branch %s: commit %s reverts %s to %s\n", r.branch, output.ShortHash(made.Hash), r.name, describeCommit(r.from))
	for _, p := range paths {
		fmt.Fprintf(out, "  %s\n", p)
	}
	fmt.Fprintf(out, "%sopen a pull request from %s into %s\n", next, r.branch, cmp.Or(r.follows, "the branch that the daemon follows"))
	return nil
}

// find determines the commits to revert to and to start from.
func (r *rollback) find(ctx context.Context) error {
	var err error
	if r.clone, err = gitsource.OpenClone(r.path); err != nil {
		return err
	}
	if r.to == "" || r.base == "" {
		if err := r.ask(ctx); err != nil {
			return err
		}
	}
	if r.from, err = r.clone.Commit(r.to); err != nil {
		return fmt.Errorf("%w: run \"git fetch\", name a clone of the fleet's repository with --path, or another commit with --to", err)
	}
	if r.now, err = r.clone.Commit(r.base); err != nil {
		return fmt.Errorf("%w: run \"git fetch\", name a clone of the fleet's repository with --path, or another commit with --base", err)
	}
	if r.branch == "" {
		r.branch = "gitfleet/rollback-" + strings.ReplaceAll(r.name, "/", "-") + "-" + output.ShortHash(r.from.Hash)
	}
	if r.branch == r.follows {
		return fmt.Errorf("--branch %s is the branch that the daemon follows: name another, and merge it by a pull request", r.branch)
	}
	return nil
}

// ask requests from the daemon what the flags leave open.
func (r *rollback) ask(ctx context.Context) error {
	c, err := r.at.Client()
	if err != nil {
		return err
	}
	report, err := c.Report(ctx, client.Subject{})
	if err != nil {
		return err
	}
	r.follows, _ = strings.CutPrefix(report.Source.Git.Ref, "branch ")
	if r.base == "" {
		r.base = cmp.Or(report.Source.Git.Head, report.Source.InForce.Hash)
	}
	if r.to != "" {
		return nil
	}
	i := slices.IndexFunc(report.Details, func(d *status.Detail) bool { return d.Placement == r.name })
	if i < 0 {
		return fmt.Errorf("%w\nIf it was deleted, name the commit to revert to with --to", lookup.InReport(report, r.name, ""))
	}
	if r.to = report.Details[i].Proven; r.to == "" {
		return fmt.Errorf("no content of %s was ever available on every cluster, so there is no commit to revert to; name one with --to", r.name)
	}
	r.proven = true
	return nil
}

// make creates the commit, to which no reference points yet, and returns the changed files.
func (r *rollback) make() (gitsource.Commit, []string, error) {
	name, email, err := r.who()
	if err != nil {
		return gitsource.Commit{}, nil, err
	}
	_, within, err := gitsource.FindWorkTree(r.path)
	if err != nil {
		return gitsource.Commit{}, nil, err
	}
	r.loader = settings.Default().UserLoader(within)
	paths, err := r.paths()
	if err != nil {
		return gitsource.Commit{}, nil, err
	}
	made, err := r.clone.Restore(gitsource.RestoreOptions{
		Base: r.now.Hash, From: r.from.Hash, Paths: paths, Message: r.message(), Author: name, Email: email, Time: time.Now(),
	})
	if err == nil {
		err = r.check(made)
	}
	return made, paths, err
}

func (r *rollback) message() string {
	why := "as requested"
	if r.proven {
		why = "the last whose content was available on every cluster"
	}
	return fmt.Sprintf("Roll %s back to %s\n\nIts files get the content they had at commit\n%s\n(%s),\n%s.\n", r.name, output.ShortHash(r.from.Hash), r.from.Hash, r.from.Subject, why)
}

// who returns the author of the commit.
func (r *rollback) who() (name, email string, err error) {
	if r.author == "" {
		name, email = r.clone.Author()
		if name == "" || email == "" {
			return "", "", errors.New("the author is not known: set user.name and user.email with \"git config\", or use --author \"NAME <ADDRESS>\"")
		}
		return name, email, nil
	}
	name, rest, ok := strings.Cut(r.author, " <")
	email, closed := strings.CutSuffix(rest, ">")
	if !ok || !closed || strings.TrimSpace(name) == "" || email == "" || strings.ContainsAny(r.author, "\n") || strings.ContainsAny(email, "<>") {
		return "", "", fmt.Errorf("--author %q: write \"NAME <ADDRESS>\"", r.author)
	}
	return strings.TrimSpace(name), email, nil
}

func (r *rollback) pushTo(ctx context.Context, commit string) error {
	cfg, err := settings.Read(r.at.Config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		return err
	}
	if cfg.Source.Branch == r.branch {
		return fmt.Errorf("--branch %s is the branch that the daemon follows: name another", r.branch)
	}
	return r.clone.Push(ctx, cfg.GitConfig(slog.New(slog.DiscardHandler)), r.branch, commit)
}
