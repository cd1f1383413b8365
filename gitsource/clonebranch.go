package gitsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// The author of the Publisher's commits.
const publisherName, publisherEmail = "gitfleet", "gitfleet@noreply.invalid"

// RestoreOptions describe a commit that restores the content of files from an earlier commit.
type RestoreOptions struct {
	// Base is the parent of the new commit, and From the commit with the content to restore. A
	// path that does not exist in From is removed.
	Base, From string
	Paths      []string
	Message    string
	// Author and Email are the author and committer of the new commit.
	Author, Email string
	Time          time.Time
}

// Restore writes the commit to the object store. No reference points to it until Branch is
// called.
func (c *Clone) Restore(r RestoreOptions) (Commit, error) {
	base, err := c.commit(r.Base)
	if err != nil {
		return Commit{}, err
	}
	before, err := base.Tree()
	if err != nil {
		return Commit{}, err
	}
	from, err := c.treeAt(r.From)
	if err != nil {
		return Commit{}, err
	}
	changes := map[string]*object.TreeEntry{}
	for _, p := range r.Paths {
		changes[p] = entryOf(from, p)
	}
	tree, err := editTree(c.repo, before, changes)
	if err != nil {
		return Commit{}, fmt.Errorf("restore the files of %s: %w", r.From, err)
	}
	who := object.Signature{Name: r.Author, Email: r.Email, When: r.Time}
	h, err := storeObject(c.repo, &object.Commit{Author: who, Committer: who, Message: r.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{base.Hash}})
	if err != nil {
		return Commit{}, err
	}
	return c.Commit(h.String())
}

// editTree writes a tree with the files in changes replaced, or removed where the entry is nil.
// The hash is zero if the directory would be empty.
func editTree(s storer.EncodedObjectStorer, t *object.Tree, changes map[string]*object.TreeEntry) (plumbing.Hash, error) {
	entries := map[string]object.TreeEntry{}
	if t != nil {
		for _, e := range t.Entries {
			entries[e.Name] = e
		}
	}
	below := map[string]map[string]*object.TreeEntry{}
	for path, e := range changes {
		name, rest, deeper := strings.Cut(path, "/")
		switch {
		case deeper && below[name] == nil:
			below[name] = map[string]*object.TreeEntry{rest: e}
		case deeper:
			below[name][rest] = e
		case e == nil:
			delete(entries, name)
		default:
			entries[name] = object.TreeEntry{Name: name, Mode: e.Mode, Hash: e.Hash}
		}
	}
	for name, changes := range below {
		var sub *object.Tree
		if e, ok := entries[name]; ok && e.Mode == filemode.Dir {
			var err error
			if sub, err = object.GetTree(s, e.Hash); err != nil {
				return plumbing.ZeroHash, err
			}
		}
		h, err := editTree(s, sub, changes)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if delete(entries, name); !h.IsZero() {
			entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h}
		}
	}
	if len(entries) == 0 && t != nil {
		return plumbing.ZeroHash, nil
	}
	return storeObject(s, treeOf(slices.Collect(maps.Values(entries))))
}

// treeOf returns a directory with its entries in the order that Git requires.
func treeOf(entries []object.TreeEntry) *object.Tree {
	sorted := slices.Clone(entries)
	sort.Sort(object.TreeEntrySorter(sorted))
	return &object.Tree{Entries: sorted}
}

func storeObject(s storer.EncodedObjectStorer, o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	raw := s.NewEncodedObject()
	if err := o.Encode(raw); err != nil {
		return plumbing.ZeroHash, err
	}
	return s.SetEncodedObject(raw)
}

// BranchUpdate describes a commit on a branch that has what is written for it, and nothing else of the repository.
type BranchUpdate struct {
	Branch string
	// Dirs are the new contents of directories of the top level, by the paths of files in them; nil removes one. Files are files
	// of the top level. What is not named stays.
	Dirs    map[string]map[string][]byte
	Files   map[string][]byte
	Message string
	Time    time.Time
}

// UpdateBranch adds a commit to a branch of the clone, which it creates if necessary, and returns it. If nothing differs, there is
// no new commit, and changed is false. The same update of the same branch is the same commit everywhere.
func (c *Clone) UpdateBranch(u BranchUpdate) (commit string, changed bool, err error) {
	ref := plumbing.NewBranchReferenceName(u.Branch)
	if err := validName(ref); err != nil {
		return "", false, fmt.Errorf("branch %q: %w", u.Branch, err)
	}
	if head, err := c.repo.Reference(plumbing.HEAD); err == nil && head.Target() == ref && c.within != "" {
		return "", false, fmt.Errorf("branch %q is checked out here, and its files would not be changed with it; name another branch", u.Branch)
	}
	old, err := c.repo.Reference(ref)
	if err != nil && !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", false, fmt.Errorf("branch %q: %w", u.Branch, err)
	}
	made := &object.Commit{Message: u.Message}
	var before *object.Tree
	if err == nil {
		made.ParentHashes = []plumbing.Hash{old.Hash()}
		if before, err = c.treeAt(old.Hash().String()); err != nil {
			return "", false, err
		}
	}
	changes, err := c.changesOf(u)
	if err != nil {
		return "", false, err
	}
	if made.TreeHash, err = editTree(c.repo, before, changes); err != nil {
		return "", false, err
	}
	if made.TreeHash.IsZero() {
		if made.TreeHash, err = storeObject(c.repo, &object.Tree{}); err != nil {
			return "", false, err
		}
	}
	if before != nil && before.Hash == made.TreeHash {
		return old.Hash().String(), false, nil
	}
	made.Author = object.Signature{Name: publisherName, Email: publisherEmail, When: u.Time.UTC()}
	made.Committer = made.Author
	h, err := storeObject(c.repo, made)
	if err != nil {
		return "", false, err
	}
	return h.String(), true, c.repo.SetReference(plumbing.NewHashReference(ref, h))
}

// changesOf stores the files of an update, and returns the entries of the top level that it changes.
func (c *Clone) changesOf(u BranchUpdate) (map[string]*object.TreeEntry, error) {
	changes := map[string]*object.TreeEntry{}
	blobs := func(files map[string][]byte) (map[string]*object.TreeEntry, error) {
		entries := map[string]*object.TreeEntry{}
		for name, text := range files {
			blob, err := encoded(plumbing.BlobObject, text)
			if err != nil {
				return nil, err
			}
			h, err := c.repo.SetEncodedObject(blob)
			if err != nil {
				return nil, err
			}
			entries[name] = &object.TreeEntry{Mode: filemode.Regular, Hash: h}
		}
		return entries, nil
	}
	for dir, files := range u.Dirs {
		if changes[dir] = nil; len(files) == 0 {
			continue
		}
		entries, err := blobs(files)
		if err != nil {
			return nil, err
		}
		h, err := editTree(c.repo, nil, entries)
		if err != nil {
			return nil, err
		}
		changes[dir] = &object.TreeEntry{Mode: filemode.Dir, Hash: h}
	}
	files, err := blobs(u.Files)
	maps.Copy(changes, files)
	return changes, err
}

// Branch creates a branch in the clone. It is an error if the branch exists, since somebody may
// be working on it.
func (c *Clone) Branch(name, commit string) error {
	ref := plumbing.NewBranchReferenceName(name)
	if err := validName(ref); err != nil {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	if _, err := c.repo.Reference(ref); err == nil {
		return fmt.Errorf("branch %q exists already: delete it, or choose another name", name)
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	return c.repo.SetReference(plumbing.NewHashReference(ref, plumbing.NewHash(commit)))
}

// Push creates a branch on the remote of cfg, at a commit of the clone. It never changes an
// existing branch, so that the tracked branch is safe.
func (c *Clone) Push(ctx context.Context, cfg Config, branch, commit string) error {
	cfg, where, err := cfg.complete()
	if err != nil {
		return err
	}
	target, err := remote.New(cfg.remote(), where)
	if err != nil {
		return err
	}
	defer target.Close()
	to, ok := target.(remote.Pusher)
	if !ok {
		return fmt.Errorf("push to %s: it is a directory: use git push", where)
	}
	if err := c.push(ctx, to, plumbing.NewBranchReferenceName(branch), plumbing.NewHash(commit)); err != nil {
		return fmt.Errorf("push branch %s to %s: %w", branch, where, remote.ExplainRefusal(err))
	}
	return nil
}

func (c *Clone) push(ctx context.Context, to remote.Pusher, ref plumbing.ReferenceName, h plumbing.Hash) (err error) {
	s, err := to.StartPush(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	refs, err := s.List(ctx)
	if err != nil {
		return err
	}
	if _, there := refs.References[ref.String()]; there {
		return errors.New("the remote has a branch of that name already: delete it there, or name another")
	}
	var have []plumbing.Hash
	for _, there := range refs.References {
		if c.repo.HasEncodedObject(there) == nil {
			have = append(have, there)
		}
	}
	objects, err := revlist.Objects(c.repo, []plumbing.Hash{h}, have)
	if err != nil {
		return fmt.Errorf("list objects that the remote does not have: %w", err)
	}
	return remote.Update(ctx, s, refs, &packp.Command{Name: ref, Old: plumbing.ZeroHash, New: h}, c.repo, objects)
}
