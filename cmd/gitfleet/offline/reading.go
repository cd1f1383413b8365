// Package offline reads a repository, from a directory or a clone, and plans it without a daemon.
package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
)

// A Reader has the arguments of a command that reads a hub once, with the path, the credentials
// and the limits in the daemon's configuration.
type Reader struct {
	config string
	// DeletionLimit has the limits of the configuration; read sets it.
	DeletionLimit member.DeletionLimit
}

// Bind adds the flags of the configuration to those of a command.
func (r *Reader) Bind(f *pflag.FlagSet) {
	settings.Bind(f, &r.config, "the daemon's configuration file, for its path, credentials and limits", "source.path")
	f.Lookup("path").Usage = "directory below PATH, or of the repository, that is the hub"
}

// Read loads a directory, or a commit of a repository as REPO@REF. The error is a
// *hub.LoadError if the content is invalid.
func (r *Reader) Read(ctx context.Context, flags *pflag.FlagSet, what string) (*hub.Snapshot, error) {
	cfg, err := settings.Read(r.config, flags)
	if err != nil {
		return nil, err
	}
	if err := cfg.ValidateLimits(); err != nil {
		return nil, err
	}
	r.DeletionLimit = cfg.Members.DeletionLimit()
	if _, err := os.Stat(what); err == nil {
		return ReadDir(what, cfg.HubOptions())
	}
	repo, ref := splitRepository(what)
	if isAddress(repo) {
		if isExpression(ref) {
			return nil, fmt.Errorf("%s: a remote repository needs a branch, a tag, a range of versions or a whole commit hash; %s can be resolved only in a clone", what, ref)
		}
		cfg.SetRepository(repo)
		return ReadRemote(ctx, cfg, ref)
	}
	if _, err := os.Stat(repo); err != nil {
		return nil, fmt.Errorf("%s: no such directory; a repository is written URL@REF or DIRECTORY@REF", what)
	}
	return readClone(repo, ref, cfg.HubOptions())
}

// ReadChange reads the commits TO and FROM of REPO@FROM..TO; FROM is the base. For any other
// argument it calls read, and base is nil. The error is a *hub.LoadError only if TO, or the
// result of read, does not load.
func (r *Reader) ReadChange(ctx context.Context, flags *pflag.FlagSet, what string) (base, s *hub.Snapshot, err error) {
	repo, ref := splitRepository(what)
	from, to, isRange := strings.Cut(ref, "..")
	if _, err := os.Stat(what); err == nil || !isRange {
		s, err = r.Read(ctx, flags, what)
		return nil, s, err
	}
	if strings.HasPrefix(to, ".") {
		return nil, nil, fmt.Errorf("%s: a range of versions is written FROM..TO, with two dots", what)
	}
	if base, err = r.Read(ctx, flags, repo+"@"+from); err != nil {
		return nil, nil, fmt.Errorf("%s cannot be compared with %s@%s: %s", to, repo, from, err)
	}
	s, err = r.Read(ctx, flags, repo+"@"+to)
	return base, s, err
}

// Head reads the last commit of the clone that contains a directory; nil if that is not possible.
func (r *Reader) Head(flags *pflag.FlagSet, dir string) *hub.Snapshot {
	cfg, err := settings.Read(r.config, flags)
	if err != nil {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	s, err := readClone(dir, "HEAD", cfg.HubOptions())
	if err != nil {
		return nil
	}
	return s
}

// ReadDir reads a directory as if it were the tracked path in a commit of its repository:
// kustomizations may refer to files outside of it, ignore files above it apply, and problems
// have file names relative to the repository. A directory outside of a repository is treated as
// a repository.
func ReadDir(dir string, o hub.Options) (*hub.Snapshot, error) {
	files, _, within, err := gitsource.OpenWorkTree(dir)
	if err != nil {
		return nil, err
	}
	o.Path = path.Join(within, o.Path)
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	s, err := hub.NewLoader(o).Load(hub.Commit{}, files)
	var bad *hub.LoadError
	if err != nil && !errors.As(err, &bad) {
		return nil, fmt.Errorf("read %s: %s", dir, strings.TrimPrefix(err.Error(), "load commit : "))
	}
	return s, err
}

// readClone loads a commit of the clone that contains a directory. As with ReadDir, the directory is
// the hub.
func readClone(dir, ref string, o hub.Options) (*hub.Snapshot, error) {
	clone, err := gitsource.OpenClone(dir)
	if err != nil {
		return nil, err
	}
	o.Path = path.Join(clone.Within(), o.Path)
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	find := clone.Commit
	if ref != "" && isVersionRange(ref) {
		find = clone.Tagged
	}
	found, err := find(ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	files, err := clone.Files(found.Hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return hub.NewLoader(o).Load(commitOf(found), files)
}

func commitOf(c gitsource.Commit) hub.Commit {
	return hub.Commit{Hash: c.Hash, Author: c.Author, Subject: c.Subject, Time: c.Time, Message: c.Message}
}

// CloneOf returns the directory of DIRECTORY@REF; empty if what is read is something else.
func CloneOf(what string) string {
	if _, err := os.Stat(what); err == nil {
		return ""
	}
	repo, ref := splitRepository(what)
	if ref == "" || isAddress(repo) {
		return ""
	}
	return repo
}

// splitRepository splits REPO@REF. The @ between a user and a host is not a separator. A tag or a
// branch may have an @ in its name, and so may a directory, of which the longest that exists counts.
func splitRepository(what string) (repo, ref string) {
	what = strings.TrimPrefix(what, "file://")
	from := 0
	if at := strings.Index(what, "://"); at >= 0 {
		from = at + len("://")
		if slash := strings.IndexByte(what[from:], '/'); slash >= 0 {
			from += slash
		} else {
			from = len(what)
		}
	} else if isAddress(what) {
		from = strings.IndexByte(what, ':')
	} else {
		for at := strings.LastIndexByte(what, '@'); at > 0; at = strings.LastIndexByte(what[:at], '@') {
			if info, err := os.Stat(what[:at]); err == nil && info.IsDir() {
				return what[:at], what[at+1:]
			}
		}
	}
	if at := strings.IndexByte(what[from:], '@'); at >= 0 {
		return what[:from+at], what[from+at+1:]
	}
	return what, ""
}

// isAddress distinguishes a URL or user@host:path from a directory.
func isAddress(repo string) bool {
	colon := strings.IndexByte(repo, ':')
	return colon > 0 && !strings.Contains(repo[:colon], "/")
}

// isExpression reports whether a reference names a commit relative to another, as git does:
// HEAD~1, main^2, v1.0^{commit}, main@{1}. No branch or tag can have such a name.
func isExpression(ref string) bool {
	return len(ref) > 0 && !isVersionRange(ref) && strings.ContainsAny(ref, "~^{")
}

// isVersionRange reports whether a reference is a range of versions.
func isVersionRange(ref string) bool {
	return strings.ContainsAny(ref[:1], "<>=~^") || strings.Contains(ref, "*")
}

// refs returns the references that a name can stand for, the most likely first.
func refs(name string) []gitsource.Ref {
	switch {
	case name == "" || name == "HEAD":
		return []gitsource.Ref{{}}
	case len(name) == 40 && strings.Trim(name, "0123456789abcdefABCDEF") == "":
		return []gitsource.Ref{{Commit: strings.ToLower(name)}}
	case strings.HasPrefix(name, "refs/heads/"):
		return []gitsource.Ref{{Branch: strings.TrimPrefix(name, "refs/heads/")}}
	case strings.HasPrefix(name, "refs/tags/"):
		return []gitsource.Ref{{Tag: strings.TrimPrefix(name, "refs/tags/")}}
	case isVersionRange(name):
		return []gitsource.Ref{{SemVer: name}}
	}
	return []gitsource.Ref{{Branch: name}, {Tag: name}}
}

// ReadRemote loads one commit through a temporary clone.
func ReadRemote(ctx context.Context, c settings.Config, ref string) (*hub.Snapshot, error) {
	dir, err := os.MkdirTemp("", "gitfleet-")
	if err != nil {
		return nil, atomicfile.NotCreated(err, os.TempDir())
	}
	defer os.RemoveAll(dir)
	c.StateDir, c.Source.Signatures = dir, c.Source.Signatures.Unverified()
	meanings := refs(ref)
	for _, r := range meanings {
		s := &c.Source
		s.Branch, s.Tag, s.SemVer, s.Commit = r.Branch, r.Tag, r.SemVer, r.Commit
		snapshot, err := readCommit(ctx, c)
		if len(meanings) == 1 || !errors.Is(err, gitsource.ErrRefNotFound) {
			return snapshot, err
		}
	}
	return nil, fmt.Errorf("%s has no branch and no tag %q; a commit is named by its whole hash", c.Source.URL, ref)
}

// readCommit loads the commit of the reference through a clone in the state directory.
func readCommit(ctx context.Context, c settings.Config) (*hub.Snapshot, error) {
	c.Source.Interval = settings.Seconds(3600)
	if err := c.ValidateSource(); err != nil {
		return nil, err
	}
	polling, enough := context.WithCancel(ctx)
	defer enough()
	var failure error
	git := c.GitConfig(nil)
	git.Hooks.Polled = func(_ time.Duration, err error) {
		failure = err
		enough() // one commit is enough
	}
	repo, err := gitsource.Open(git)
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	var head gitsource.Commit
	if err := repo.Run(polling, func(found gitsource.Commit) { head = found }); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failure != nil:
		return nil, &cloneError{repo.Status().URL, repo.Status().Error, failure}
	}
	files, err := repo.Files(ctx, head.Hash)
	if err != nil {
		return nil, err
	}
	return hub.NewLoader(c.HubOptions()).Load(commitOf(head), files)
}

// A cloneError says why a clone failed, without secrets.
type cloneError struct {
	url, words string
	err        error
}

func (e *cloneError) Error() string { return e.url + ": " + e.words }
func (e *cloneError) Unwrap() error { return e.err }

// Plan plans a snapshot, with the observed fleet of a file if one is named.
func Plan(s *hub.Snapshot, clusters string) (*forecast.Forecast, error) {
	in, err := Input{Clusters: clusters}.input(s)
	if err != nil {
		return nil, err
	}
	in.AnyNamespace = true
	return forecast.Of(in)
}

// NewestCommit reads the newest commit of the repository through a temporary clone. refused is the
// reason why the daemon would not accept its signature; empty if it would, or requires no
// signatures. inForce is the daemon's commit; empty if it is not known.
func NewestCommit(ctx context.Context, c settings.Config, inForce string) (s *hub.Snapshot, refused string, err error) {
	if c.StateDir, err = os.MkdirTemp("", "gitfleet-"); err != nil {
		return nil, "", atomicfile.NotCreated(err, os.TempDir())
	}
	defer os.RemoveAll(c.StateDir)
	if demand := &c.Source.Signatures; c.Source.Signatures.Requirements() != nil {
		if inForce != "" && !demand.AllowRewrite {
			demand.Since = inForce
		}
		s, err = readCommit(ctx, c)
		var bad *gitsource.CommitError
		if !errors.As(err, &bad) {
			return s, "", err
		}
		refused = "the newest commit is not accepted: " + bad.Error()
		*demand = demand.Unverified()
	}
	s, err = readCommit(ctx, c)
	return s, refused, err
}
