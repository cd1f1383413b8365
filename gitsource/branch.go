package gitsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

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
	before, from, err := c.trees(r.Base, r.From)
	if err != nil {
		return Commit{}, err
	}
	changes := map[string]*object.TreeEntry{}
	for _, p := range r.Paths {
		changes[p] = entryOf(from, p)
	}
	tree, err := editTree(c.repo.Storer, before, changes)
	if err != nil {
		return Commit{}, fmt.Errorf("restore the files of %s: %w", r.From, err)
	}
	who := object.Signature{Name: r.Author, Email: r.Email, When: r.Time}
	h, err := storeObject(c.repo.Storer, &object.Commit{Author: who, Committer: who, Message: r.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{base.Hash}})
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
	out := &object.Tree{}
	for _, e := range entries {
		out.Entries = append(out.Entries, e)
	}
	// Git sorts a directory as if its name ended with a slash.
	slices.SortFunc(out.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return storeObject(s, out)
}

func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
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

// Branch creates a branch in the clone. It is an error if the branch exists, since somebody may
// be working on it.
func (c *Clone) Branch(name, commit string) error {
	ref := plumbing.NewBranchReferenceName(name)
	if err := validName(ref); err != nil {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	if _, err := c.repo.Reference(ref, false); err == nil {
		return fmt.Errorf("branch %q exists already: delete it, or choose another name", name)
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	return c.repo.Storer.SetReference(plumbing.NewHashReference(ref, plumbing.NewHash(commit)))
}
