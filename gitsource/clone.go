package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Clone is a user's clone of the repository. Commits and branches can be added to it; the
// working tree is never changed.
type Clone struct {
	repo  *git.Repository
	cache *objects.TreeCache
}

// OpenClone opens the clone that contains a directory, or the bare clone in it.
func OpenClone(dir string) (*Clone, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repo, err = git.PlainOpen(dir) // a bare clone has no .git
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s is not in a clone of a Git repository", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the clone at %s: %w", dir, err)
	}
	return &Clone{repo, objects.NewTreeCache(treeCache)}, nil
}

// Commit finds a commit by its hash, an abbreviated hash, a branch or a tag.
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

func (c *Clone) commit(revision string) (*object.Commit, error) {
	h, err := c.repo.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, fmt.Errorf("commit %s is not in this clone: %w", revision, ErrUnknownCommit)
	}
	o, err := c.repo.CommitObject(*h)
	if err != nil {
		return nil, fmt.Errorf("commit %s is not in this clone: %w", revision, ErrUnknownCommit)
	}
	return o, nil
}

// Files returns the tree of a commit. The file system reads from the clone on demand.
func (c *Clone) Files(revision string) (fs.FS, error) {
	o, err := c.commit(revision)
	if err != nil {
		return nil, err
	}
	return &files{objects: c, root: o.TreeHash, time: o.Committer.When, commit: o.Hash.String()}, nil
}

func (c *Clone) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := c.repo.Storer.EncodedObject(t, h)
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", h, err)
	}
	return contentOf(o)
}

func (c *Clone) size(h plumbing.Hash) (int64, error) { return c.repo.Storer.EncodedObjectSize(h) }

func (c *Clone) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	return c.cache.Read(h, func(h plumbing.Hash) ([]object.TreeEntry, error) {
		raw, err := c.object(plumbing.TreeObject, h)
		if err != nil {
			return nil, err
		}
		return objects.ParseTree(h, raw)
	})
}

// Author returns user.name and user.email of Git's configuration for this clone; empty if they
// are not set.
func (c *Clone) Author() (name, email string) {
	cfg, err := c.repo.ConfigScoped(gitconfig.SystemScope)
	if err != nil {
		return "", ""
	}
	return cfg.User.Name, cfg.User.Email
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
