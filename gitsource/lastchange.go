package gitsource

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// maxLastChangeCommits is how many commits LastChanges reads.
const maxLastChangeCommits = 2000

// LastChanges returns, by path, the commits that last changed files of a commit that was fetched at any time. As in git log, the
// change of a branch counts and not the merge, unless a file of the merge is that of none of its parents. A file that was last
// changed before the newest maxLastChangeCommits commits, or that does not exist, is left out.
func (r *Repo) LastChanges(ctx context.Context, head string, paths []string) (map[string]Commit, error) {
	h, err := objects.ParseHash(head)
	if err != nil {
		return nil, err
	}
	found := map[string]Commit{}
	err = r.withStore(func(st *objects.Store) error {
		l := lastChanges{repo: r, st: st, found: found}
		return l.walk(ctx, h, paths)
	})
	if err != nil {
		return nil, fmt.Errorf("history of commit %s: %w", h, err)
	}
	return found, nil
}

type lastChanges struct {
	repo  *Repo
	st    *objects.Store
	found map[string]Commit
}

// filesAt are files whose history goes on at a commit.
type filesAt struct {
	commit plumbing.Hash
	paths  []string
}

func (l *lastChanges) walk(ctx context.Context, head plumbing.Hash, paths []string) error {
	for open, read := []filesAt{{head, paths}}, 0; len(open) > 0 && read < maxLastChangeCommits; read++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := open[len(open)-1]
		open = open[:len(open)-1]
		c, err := readCommit(l.st, next.commit)
		if err != nil {
			return err
		}
		own, err := l.entries(c.Tree, next.paths)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(next.paths), func(p string) bool { return own[p] == "" })
		for _, h := range c.Parents {
			parent, err := readCommit(l.st, h)
			if err != nil {
				return err
			}
			before, err := l.entries(parent.Tree, left)
			if err != nil {
				return err
			}
			same := func(p string) bool { return before[p] == own[p] }
			if further := slices.DeleteFunc(slices.Clone(left), func(p string) bool { return !same(p) }); len(further) > 0 {
				open = append(open, filesAt{h, further})
				left = slices.DeleteFunc(left, same)
			}
		}
		for _, p := range left {
			l.found[p] = l.repo.cfg.Signatures.publicCommit(c)
		}
	}
	return nil
}

// entries describes what a tree has at some paths; a path that is no file is left out.
func (l *lastChanges) entries(root plumbing.Hash, paths []string) (map[string]string, error) {
	out := make(map[string]string, len(paths))
	for _, p := range paths {
		dir, e := root, object.TreeEntry{}
		for name := range strings.SplitSeq(path.Clean(p), "/") {
			if e = (object.TreeEntry{}); dir.IsZero() {
				break
			}
			var err error
			if e, _, err = l.repo.trees.Find(dir, name, l.st.Tree); err != nil {
				return nil, err
			}
			dir = dirHash(e)
		}
		if text := describe(e); text != "" {
			out[p] = text
		}
	}
	return out, nil
}
