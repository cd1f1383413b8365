// Package lock has the command that locks what a repository takes from others.
package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

// New returns the command lock.
func New() *cobra.Command {
	var c command
	cmd := &cobra.Command{
		Use:   "lock [PATH]",
		Short: "Lock the remote bases of kustomizations to commits",
		Long: `Lock finds the remote bases that the kustomizations of a repository refer to,
asks their repositories which commit each branch or tag is, and writes that to
` + lockfile.Name + `, which is committed: a daemon uses these commits and no
others. An entry that is there stays as it is, unless --update names it, and
one that nothing refers to any more is removed. What is locked is fetched into
the cache of the user, so that validate and plan can build it without the
network.

PATH is the directory that is the hub; by default the current one.`,
		Example: `  gitfleet lock
  gitfleet lock fleet --update https://github.com/org/bases
  gitfleet lock --update all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return c.run(cmd.Context(), cmd.Flags(), cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().StringSliceVar(&c.update, "update", nil, "look up again what is locked for a `URL`, with or without ?ref=, or for all")
	settings.Bind(cmd.Flags(), &c.config, "the daemon's configuration file, for its path, credentials and limits", "source.path")
	cmd.Flags().Lookup("path").Usage = "directory below PATH that is the hub"
	return cmd
}

// A command has the arguments of lock.
type command struct {
	config string
	update []string
}

// A repository is the directory whose remote bases are locked.
type repository struct {
	files   fs.FS
	options hub.Options
	bases   *gitsource.Bases
	// file is the lock file.
	file string
}

func (c *command) run(ctx context.Context, flags *pflag.FlagSet, out io.Writer, dir string) error {
	cfg, err := settings.Read(c.config, flags)
	if err != nil {
		return err
	}
	r, err := open(cfg, dir)
	if err != nil {
		return err
	}
	before, err := r.read()
	if err != nil {
		return err
	}
	kept, err := c.kept(before)
	if err != nil {
		return err
	}
	after, failures := r.lock(ctx, before, kept)
	if errors.Is(failures, errUnreadable) {
		return failures
	}
	if err := r.write(out, before, after); err != nil {
		return err
	}
	return failures
}

func open(cfg settings.Config, dir string) (*repository, error) {
	files, _, within, err := gitsource.OpenWorkTree(dir)
	if err != nil {
		return nil, err
	}
	r := &repository{files: files, options: cfg.HubOptions(), bases: cfg.UserBases()}
	r.options.Bases = r.bases.Files
	r.file = filepath.Join(dir, r.options.Path, lockfile.Name)
	r.options.Path = path.Join(within, r.options.Path)
	return r, r.options.Validate()
}

// read reads the lock file, which need not exist.
func (r *repository) read() (lockfile.File, error) {
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return lockfile.File{}, nil
	}
	if err != nil {
		return lockfile.File{}, err
	}
	f, problems := lockfile.Read(r.file, text, r.options.Limits.WithDefaults())
	if problems.HasErrors() {
		return f, fmt.Errorf("%s; correct it, or remove the file to lock everything anew", problems.Errors().Summary())
	}
	return f, nil
}

// kept returns what is not to be looked up again.
func (c *command) kept(before lockfile.File) (lockfile.File, error) {
	kept := before
	for _, name := range c.update {
		n := len(kept.Bases)
		matches := func(b lockfile.Base) bool { return name == "all" || name == b.URL || name == b.String() }
		kept.Bases = slices.DeleteFunc(slices.Clone(kept.Bases), matches)
		if len(kept.Bases) == n && name != "all" {
			var known []string
			for _, b := range before.Bases {
				known = append(known, b.String())
			}
			slices.Sort(known)
			return kept, fmt.Errorf("--update %s: nothing is locked for it; locked are: %s", name, strings.Join(known, ", "))
		}
	}
	return kept, nil
}

var errUnreadable = errors.New("the repository cannot be read")

// lock locks what the kustomizations refer to, and fetches it: remote bases may have remote bases themselves. What fails
// stays as it was before.
func (r *repository) lock(ctx context.Context, before, known lockfile.File) (lockfile.File, error) {
	var failures []error
	tried := map[string]bool{}
	for {
		r.options.Lock = &known
		uses, err := r.uses()
		if err != nil {
			return known, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		var untried []hub.RemoteBase
		for _, use := range uses {
			if (use.Commit == "" || use.Missing) && !tried[use.String()] {
				tried[use.String()] = true
				untried = append(untried, use)
			}
		}
		again := false
		for i, found := range r.fetch(ctx, untried) {
			use, commit, err := untried[i], found.commit, found.err
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", use, err))
				commit = before.Commit(use.URL, use.Ref)
			}
			if use.Commit == "" && commit != "" {
				known.Bases = append(slices.Clone(known.Bases), lockfile.Base{URL: use.URL, Ref: use.Ref, Commit: commit})
			}
			again = again || err == nil || commit != ""
		}
		if !again {
			known.Bases = slices.DeleteFunc(slices.Clone(known.Bases), func(b lockfile.Base) bool {
				return !slices.ContainsFunc(uses, func(u hub.RemoteBase) bool { return u.URL == b.URL && u.Ref == b.Ref })
			})
			return known, errors.Join(failures...)
		}
	}
}

// A found is the commit of a remote base, or why there is none.
type found struct {
	commit string
	err    error
}

// fetch looks up the commits of remote bases that have none, and fetches all of them, at the same time, since their hosts
// may be slow.
func (r *repository) fetch(ctx context.Context, bases []hub.RemoteBase) []found {
	out := make([]found, len(bases))
	var fetches sync.WaitGroup
	for i, b := range bases {
		fetches.Go(func() {
			if out[i].commit = b.Commit; b.Commit == "" {
				out[i].commit, out[i].err = r.bases.Lock(ctx, b.URL, b.Ref)
			} else {
				out[i].err = r.bases.Fetch(ctx, b.URL, b.Commit)
			}
		})
	}
	fetches.Wait()
	return out
}

// uses returns the remote bases that the kustomizations refer to, whatever else is wrong with the repository.
func (r *repository) uses() ([]hub.RemoteBase, error) {
	s, err := hub.NewLoader(r.options).Load(hub.Commit{}, r.files)
	var bad *hub.LoadError
	switch {
	case errors.As(err, &bad):
		return bad.Bases, nil
	case err != nil:
		return nil, err
	}
	return s.Bases, nil
}

// write writes the lock file if it has changed, and says what has.
func (r *repository) write(out io.Writer, before, after lockfile.File) error {
	var b strings.Builder
	for _, base := range after.Bases {
		switch was := before.Commit(base.URL, base.Ref); was {
		case base.Commit:
		case "":
			fmt.Fprintf(&b, "locked  %s at %s\n", base, base.Commit)
		default:
			fmt.Fprintf(&b, "updated %s from %s to %s\n", base, was, base.Commit)
		}
	}
	for _, base := range before.Bases {
		if after.Commit(base.URL, base.Ref) == "" {
			fmt.Fprintf(&b, "removed %s, which nothing refers to\n", base)
		}
	}
	if b.Len() == 0 && len(after.Bases) == 0 {
		_, err := fmt.Fprintln(out, "nothing refers to another repository, so there is nothing to lock")
		return err
	}
	if b.Len() == 0 {
		_, err := fmt.Fprintf(out, "%s is as it was: %s\n", r.file, output.Count(len(after.Bases), "remote base"))
		return err
	}
	if err := os.WriteFile(r.file, after.Text(), 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%swrote %s; commit it\n", b.String(), r.file)
	return err
}
