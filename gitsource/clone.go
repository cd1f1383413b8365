package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"

	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// A Clone is a user's clone of the repository. Commits and branches can be added to it; the
// working tree is never changed.
type Clone struct {
	repo   *remote.Repository
	within string
	cache  *objects.TreeCache
}

// OpenClone opens the clone that contains a directory, or the Git directory in it, as of a bare
// clone.
func OpenClone(dir string) (*Clone, error) {
	top, within := dir, "."
	if !remote.IsRepository(dir) {
		var err error
		if top, within, err = FindWorkTree(dir); err != nil {
			return nil, err
		}
	}
	repo, err := remote.OpenRepository(top)
	if errors.Is(err, transport.ErrRepositoryNotFound) {
		return nil, fmt.Errorf("%s is not in a clone of a Git repository", dir)
	}
	if err != nil {
		return nil, err
	}
	return &Clone{repo, within, objects.NewTreeCache(treeCache)}, nil
}

// Within returns the slash-separated path of the directory that was opened in the working tree.
func (c *Clone) Within() string { return c.within }

// Commit finds a commit by a revision: a branch, a tag, a remote-tracking branch or HEAD, a hash or
// the beginning of one, followed by any number of ~N and ^N.
func (c *Clone) Commit(revision string) (Commit, error) {
	o, err := c.commit(revision)
	if err != nil {
		return Commit{}, err
	}
	text, err := c.object(plumbing.CommitObject, o.Hash)
	if err != nil {
		return Commit{}, err
	}
	parsed, err := objects.ParseCommit(o.Hash, text)
	if err != nil {
		return Commit{}, err
	}
	return publicCommit(parsed), nil
}

// Files returns the tree of a commit. The file system reads from the clone on demand.
func (c *Clone) Files(revision string) (fs.FS, error) {
	o, err := c.commit(revision)
	if err != nil {
		return nil, err
	}
	return &files{ctx: context.Background(), objects: c, root: o.TreeHash, time: o.Committer.When, commit: o.Hash.String()}, nil
}

func (c *Clone) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := c.repo.EncodedObject(t, h)
	if err != nil {
		return nil, c.repo.Explain(fmt.Errorf("object %s: %w", h, err))
	}
	return contentOf(o)
}

func (c *Clone) size(h plumbing.Hash) (int64, error) {
	size, err := c.repo.EncodedObjectSize(h)
	if err != nil {
		return 0, c.repo.Explain(fmt.Errorf("object %s: %w", h, err))
	}
	return size, nil
}

func (c *Clone) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	return c.cache.Read(h, c.readTree)
}

func (c *Clone) entry(dir plumbing.Hash, name string) (object.TreeEntry, bool, error) {
	return c.cache.Find(dir, name, c.readTree)
}

func (c *Clone) readTree(h plumbing.Hash) ([]object.TreeEntry, error) {
	raw, err := c.object(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	return objects.ParseTree(h, raw)
}

// Remotes returns the repositories of the clone's remotes, as remote.Identity does: that of origin, then the others by their
// names. What is no address that gitfleet can read from is left out.
func (c *Clone) Remotes() []string {
	cfg, err := c.repo.Config()
	if err != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(cfg.Remotes))
	if _, has := cfg.Remotes[mainRemote]; has {
		names = slices.Insert(names, 0, mainRemote)
	}
	var out []string
	for _, name := range names {
		for _, address := range cfg.Remotes[name].URLs {
			if u, err := url.Parse(address); err == nil && u.User != nil {
				u.User = nil // people may have a token in it
				address = u.String()
			}
			if id := remote.Identity(address); id != "" && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// mainRemote is how git names the remote that a clone was made of.
const mainRemote = "origin"

// Author returns user.name and user.email of Git's configuration for this clone; empty if they
// are not set.
func (c *Clone) Author() (name, email string) {
	configs := []func() (*gitconfig.Config, error){
		c.repo.Config,
		func() (*gitconfig.Config, error) { return gitconfig.LoadConfig(gitconfig.GlobalScope) },
		func() (*gitconfig.Config, error) { return gitconfig.LoadConfig(gitconfig.SystemScope) },
	}
	for _, read := range configs { // the first that has a value counts
		cfg, err := read()
		if err != nil {
			return "", ""
		}
		name, email = cmp.Or(name, cfg.User.Name), cmp.Or(email, cfg.User.Email)
	}
	return name, email
}

// Differing returns those of the paths whose files differ between two commits.
func (c *Clone) Differing(one, other string, paths []string) ([]string, error) {
	a, err := c.treeAt(one)
	if err != nil {
		return nil, err
	}
	b, err := c.treeAt(other)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return sameEntry(entryOf(a, p), entryOf(b, p)) }), nil
}

func (c *Clone) treeAt(revision string) (*object.Tree, error) {
	o, err := c.commit(revision)
	if err != nil {
		return nil, err
	}
	return o.Tree()
}

// sameEntry compares files of two trees, of which either may be nil.
func sameEntry(a, b *object.TreeEntry) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Hash == b.Hash && a.Mode == b.Mode
}

// entryOf returns the entry of a file; nil if there is no such file.
func entryOf(t *object.Tree, path string) *object.TreeEntry {
	e, err := t.FindEntry(path)
	if err != nil || e.Mode == filemode.Dir {
		return nil
	}
	return e
}

// Tagged finds the commit of the highest tag in a range of versions.
func (c *Clone) Tagged(versions string) (Commit, error) {
	refs, err := c.repo.References()
	if err != nil {
		return Commit{}, fmt.Errorf("list references: %w", err)
	}
	t, err := Ref{SemVer: versions}.highest(refs)
	if err != nil {
		return Commit{}, err
	}
	return c.Commit(t.object.String())
}
