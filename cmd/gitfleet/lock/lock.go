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
		Short: "Lock remote bases to commits, and charts to versions and digests",
		Long: `Lock finds the remote bases that the kustomizations of a repository refer to,
and the charts of registries and chart repositories. It asks which commit each
branch or tag is, and which is the newest chart of a range of versions and what
its digest is, and writes that to ` + lockfile.Name + `, which is committed: a
daemon uses these commits and charts and no others. An entry that is there stays
as it is, unless --update names it, and one that nothing refers to any more is
removed. What is locked is fetched into the cache of the user, so that validate
and plan can build it without the network.

PATH is the directory that is the hub; by default the current one.`,
		Example: `  gitfleet lock
  gitfleet lock fleet --update https://github.com/org/bases
  gitfleet lock --update oci://ghcr.io/org/charts/web
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
	cmd.Flags().StringSliceVar(&c.update, "update", nil, "look up again what is locked for a `URL`, with or without ?ref=, for a chart by REPOSITORY/NAME, or for all")
	settings.Bind(cmd.Flags(), &c.config, "the daemon's configuration file, for its path, credentials and limits", "source.path")
	cmd.Flags().Lookup("path").Usage = "directory below PATH that is the hub"
	return cmd
}

// A command has the arguments of lock.
type command struct {
	config string
	update []string
}

// A repository is the directory whose remote bases and charts are locked.
type repository struct {
	files   fs.FS
	options hub.Options
	remotes settings.Remotes
	// root is the directory, and file the lock file in it.
	root, file string
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
	if failures != nil && len(before.Bases)+len(before.Charts)+len(after.Bases)+len(after.Charts) == 0 {
		return failures // there is something to lock, and nothing of it could be
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
	r := &repository{files: files, options: cfg.HubOptions(), remotes: cfg.UserRemotes()}
	r.remotes.Into(&r.options)
	r.root, r.file = dir, filepath.Join(r.options.Path, lockfile.Name)
	r.options.Path = path.Join(within, r.options.Path)
	return r, r.options.Validate()
}

// path returns the path of the lock file.
func (r *repository) path() string { return filepath.Join(r.root, r.file) }

// read reads the lock file, which need not exist. If it is a link, that is an error: the repository may be one of others.
func (r *repository) read() (lockfile.File, error) {
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return lockfile.File{}, err
	}
	defer root.Close()
	switch info, err := root.Lstat(r.file); {
	case errors.Is(err, fs.ErrNotExist):
		return lockfile.File{}, nil
	case err == nil && !info.Mode().IsRegular():
		return lockfile.File{}, fmt.Errorf("%s is not a regular file; remove it", r.path())
	}
	text, err := root.ReadFile(r.file)
	if err != nil {
		return lockfile.File{}, err
	}
	f, problems := lockfile.Read(r.path(), text, r.options.Limits.WithDefaults())
	if problems.HasErrors() {
		return f, fmt.Errorf("%s; correct it, or remove the file to lock everything anew", problems.Errors().Summary())
	}
	return f, nil
}

// kept returns what is not to be looked up again.
func (c *command) kept(before lockfile.File) (lockfile.File, error) {
	kept := lockfile.File{Bases: slices.Clone(before.Bases), Charts: slices.Clone(before.Charts)}
	for _, name := range c.update {
		n := len(kept.Bases) + len(kept.Charts)
		kept.Bases = slices.DeleteFunc(kept.Bases, func(b lockfile.Base) bool { return name == "all" || name == b.URL || name == b.String() })
		kept.Charts = slices.DeleteFunc(kept.Charts, func(c lockfile.Chart) bool {
			return name == "all" || name == c.Repository || name == c.Repository+"/"+c.Name || name == c.Request.String()
		})
		if len(kept.Bases)+len(kept.Charts) == n && name != "all" {
			var known []string
			for _, b := range before.Bases {
				known = append(known, b.String())
			}
			for _, c := range before.Charts {
				known = append(known, c.Request.String())
			}
			slices.Sort(known)
			return kept, fmt.Errorf("--update %s: nothing is locked for it; locked are: %s", name, strings.Join(known, ", "))
		}
	}
	return kept, nil
}

var errUnreadable = errors.New("the repository cannot be read")

// lock locks what the repository refers to, and fetches it: remote bases may have remote bases themselves. What fails stays as it
// was before.
func (r *repository) lock(ctx context.Context, before, known lockfile.File) (lockfile.File, error) {
	l := &locking{repository: r, before: before, known: known, tried: map[string]bool{}}
	for {
		r.options.Lock = &l.known
		bases, charts, err := r.uses()
		if err != nil {
			return l.known, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		again := l.bases(ctx, bases)
		for _, use := range charts {
			again = l.chart(ctx, use) || again
		}
		if !again {
			l.known.Bases = slices.DeleteFunc(slices.Clone(l.known.Bases), func(b lockfile.Base) bool {
				return !slices.ContainsFunc(bases, func(u hub.RemoteBase) bool { return u.URL == b.URL && u.Ref == b.Ref })
			})
			l.known.Charts = slices.DeleteFunc(slices.Clone(l.known.Charts), func(c lockfile.Chart) bool {
				return !slices.ContainsFunc(charts, func(u hub.RemoteChart) bool { return u.Request == c.Request })
			})
			return l.known, errors.Join(l.failures...)
		}
	}
}

// A locking is what is locked so far.
type locking struct {
	*repository
	before, known lockfile.File
	tried         map[string]bool
	failures      []error
}

// bases locks and fetches remote bases. It reports whether there is something new to read.
func (l *locking) bases(ctx context.Context, uses []hub.RemoteBase) (again bool) {
	var untried []hub.RemoteBase
	for _, use := range uses {
		if (use.Commit == "" || use.Missing) && !l.tried[use.String()] {
			l.tried[use.String()] = true
			untried = append(untried, use)
		}
	}
	for i, found := range l.fetch(ctx, untried) {
		use, commit, err := untried[i], found.commit, found.err
		if err != nil {
			l.failures = append(l.failures, fmt.Errorf("%s: %w", use, err))
			commit = l.before.Commit(use.URL, use.Ref)
		}
		if use.Commit == "" && commit != "" {
			l.known.Bases = append(slices.Clone(l.known.Bases), lockfile.Base{URL: use.URL, Ref: use.Ref, Commit: commit})
		}
		again = again || err == nil || commit != ""
	}
	return again
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
				out[i].commit, out[i].err = r.remotes.Bases.Lock(ctx, b.URL, b.Ref)
			} else {
				out[i].err = r.remotes.Bases.Fetch(ctx, b.URL, b.Commit)
			}
		})
	}
	fetches.Wait()
	return out
}

// chart does the same as bases with a chart.
func (l *locking) chart(ctx context.Context, use hub.RemoteChart) bool {
	if use.Digest != "" && !use.Missing || l.tried[use.Request.String()] {
		return false
	}
	l.tried[use.Request.String()] = true
	locked, err := use.Chart, error(nil)
	if locked.Digest == "" {
		locked, err = l.remotes.Charts.Lock(ctx, use.Request)
	} else {
		err = l.remotes.Charts.Fetch(ctx, locked)
	}
	if err != nil {
		l.failures = append(l.failures, err)
		locked, _ = l.before.Chart(use.Request)
	}
	if use.Digest == "" && locked.Digest != "" {
		l.known.Charts = append(slices.Clone(l.known.Charts), locked)
	}
	return err == nil || locked.Digest != ""
}

// uses returns the remote bases and charts that the repository refers to, whatever else is wrong with it.
func (r *repository) uses() ([]hub.RemoteBase, []hub.RemoteChart, error) {
	s, err := hub.NewLoader(r.options).Load(hub.Commit{}, r.files)
	var bad *hub.LoadError
	switch {
	case errors.As(err, &bad):
		return bad.Bases, bad.Charts, nil
	case err != nil:
		return nil, nil, err
	}
	return s.Bases, s.Charts, nil
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
	for _, c := range after.Charts {
		switch was, _ := before.Chart(c.Request); was {
		case c:
		case lockfile.Chart{}:
			fmt.Fprintf(&b, "locked  %s at %s, %s\n", c.Request, c.Resolved, c.Digest)
		default:
			fmt.Fprintf(&b, "updated %s from %s, %s, to %s, %s\n", c.Request, was.Resolved, was.Digest, c.Resolved, c.Digest)
		}
	}
	for _, c := range before.Charts {
		if _, still := after.Chart(c.Request); !still {
			fmt.Fprintf(&b, "removed %s, which nothing refers to\n", c.Request)
		}
	}
	if b.Len() == 0 && len(after.Bases)+len(after.Charts) == 0 {
		_, err := fmt.Fprintln(out, "nothing refers to another repository, so there is nothing to lock")
		return err
	}
	if b.Len() == 0 {
		count := output.Count(len(after.Bases), "remote base")
		if len(after.Charts) > 0 {
			count = output.Count(len(after.Charts), "chart")
			if len(after.Bases) > 0 {
				count = output.Count(len(after.Bases), "remote base") + ", " + count
			}
		}
		_, err := fmt.Fprintf(out, "%s is as it was: %s\n", r.path(), count)
		return err
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile(r.file, after.Text(), 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%swrote %s; commit it\n", b.String(), r.path())
	return err
}
