package gitsource

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// maxLastChangeCommits is how many commits LastChanges and Since read.
const maxLastChangeCommits = 2000

// LastChanges returns, by path, the commits that last changed files of a commit that was fetched at any time. As in git log, the
// change of a branch counts and not the merge, unless a file of the merge is that of none of its parents. A file that was last
// changed before the newest maxLastChangeCommits commits, or that does not exist, is left out.
func (r *Repo) LastChanges(ctx context.Context, head string, paths []string) (map[string]Commit, error) {
	return readHistory(r, head, func(st *objects.Store, h plumbing.Hash) (map[string]Commit, error) {
		l := lastChanges{repo: r, st: st, found: map[string]Commit{}}
		return l.found, l.walk(ctx, h, paths)
	})
}

// readHistory calls read with a commit, and returns its result unless it fails.
func readHistory[K comparable](r *Repo, head string, read func(*objects.Store, plumbing.Hash) (map[K]Commit, error)) (found map[K]Commit, err error) {
	h, err := objects.ParseHash(head)
	if err != nil {
		return nil, err
	}
	err = r.withStore(func(st *objects.Store) error {
		found, err = read(st, h)
		return err
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
		e, err := entryAt(l.repo, l.st, root, p)
		if err != nil {
			return nil, err
		}
		if text := describe(e); text != "" {
			out[p] = text
		}
	}
	return out, nil
}

// entryAt returns what a tree has at a path; zero if it has nothing there.
func entryAt(r *Repo, st *objects.Store, root plumbing.Hash, p string) (e object.TreeEntry, err error) {
	dir := root
	for name := range strings.SplitSeq(path.Clean(p), "/") {
		if dir.IsZero() {
			return object.TreeEntry{}, nil
		}
		if e, _, err = r.trees.Find(dir, name, st.Tree); err != nil {
			return object.TreeEntry{}, err
		}
		dir = dirHash(e)
	}
	return e, nil
}

// A FilePart is a named part of a file, such as one of its documents.
type FilePart struct{ Path, Name string }

// Since returns the commits in which parts of files last changed, as seen from head. read splits the content of a file into named parts,
// none of which is empty. Only first parents are followed, so what came with a merge dates from the merge. Parts that do not exist, or
// that are older than the newest maxLastChangeCommits commits, are left out.
func (r *Repo) Since(ctx context.Context, head string, parts []FilePart, read func(path string, content []byte) map[string]string) (map[FilePart]Commit, error) {
	return readHistory(r, head, func(st *objects.Store, h plumbing.Hash) (map[FilePart]Commit, error) {
		s := since{repo: r, st: st, readParts: read, files: map[string]fileParts{}}
		return s.walk(ctx, h, parts)
	})
}

type since struct {
	repo      *Repo
	st        *objects.Store
	readParts func(path string, content []byte) map[string]string
	files     map[string]fileParts // those that were read last, by path
}

// fileParts are the parts of a file, by name.
type fileParts struct {
	file  plumbing.Hash
	parts map[string]string
}

func (s *since) walk(ctx context.Context, head plumbing.Hash, parts []FilePart) (map[FilePart]Commit, error) {
	found, texts := map[FilePart]Commit{}, map[FilePart]string{}
	var child *objects.Commit
	for next, read := head, 0; read < maxLastChangeCommits; read++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := readCommit(s.st, next)
		if err != nil {
			return nil, err
		}
		var left []FilePart
		for _, p := range parts {
			switch text, err := s.text(c.Tree, p); {
			case err != nil:
				return nil, err
			case child == nil && text != "" || child != nil && text == texts[p]:
				texts[p], left = text, append(left, p)
			case child != nil:
				found[p] = s.repo.cfg.Signatures.publicCommit(child)
			}
		}
		if parts, child = left, c; len(parts) == 0 {
			return found, nil
		}
		if len(c.Parents) == 0 {
			for _, p := range parts {
				found[p] = s.repo.cfg.Signatures.publicCommit(c)
			}
			return found, nil
		}
		next = c.Parents[0]
	}
	return found, nil
}

// text returns a part of a file in a tree; empty if there is none.
func (s *since) text(root plumbing.Hash, p FilePart) (string, error) {
	e, err := entryAt(s.repo, s.st, root, p.Path)
	if err != nil || e.Mode != filemode.Regular && e.Mode != filemode.Executable {
		return "", err
	}
	if s.files[p.Path].file != e.Hash {
		content, err := s.st.Object(plumbing.BlobObject, e.Hash, s.repo.cfg.Limits.FileBytes)
		if err != nil {
			return "", err
		}
		s.files[p.Path] = fileParts{e.Hash, s.readParts(p.Path, content)}
	}
	return s.files[p.Path].parts[p.Name], nil
}
