package gitsource

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Change is one path that differs between two commits. From is empty if the path was added,
// To if it was removed.
type Change struct {
	Path     string
	From, To string
}

// Diff returns the files, links and submodules that differ between two commits, sorted by path.
// Directories with the same hash in both are not read. An object that cannot be read is an
// error, never a difference.
func (r *Repo) Diff(_ context.Context, from, to string) ([]Change, error) {
	var trees [2]plumbing.Hash
	for i, s := range []string{from, to} {
		h, err := objects.ParseHash(s)
		if err != nil {
			return nil, err
		}
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}
		trees[i] = c.Tree
	}
	return diffTrees(r.tree, trees[0], trees[1])
}

// diffTrees compares two trees; the zero hash stands for an empty one.
func diffTrees(tree func(plumbing.Hash) ([]objects.TreeEntry, error), from, to plumbing.Hash) ([]Change, error) {
	var changes []Change
	d := differ{tree: tree, emit: func(c Change) { changes = append(changes, c) }}
	if err := d.dirs("", from, to, 0); err != nil {
		return nil, err
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

type differ struct {
	tree func(plumbing.Hash) ([]objects.TreeEntry, error)
	emit func(Change)
}

func (d differ) dirs(path string, from, to plumbing.Hash, depth int) error {
	if from == to {
		return nil
	}
	if depth > objects.MaxDepth {
		return fmt.Errorf("%s: directories nest more than %d deep", path, objects.MaxDepth)
	}
	a, err := d.read(path, from)
	if err != nil {
		return err
	}
	b, err := d.read(path, to)
	if err != nil {
		return err
	}
	for len(a) > 0 || len(b) > 0 {
		var old, now objects.TreeEntry
		switch side := first(a, b); {
		case side < 0:
			old, a = a[0], a[1:]
		case side > 0:
			now, b = b[0], b[1:]
		default:
			old, now, a, b = a[0], b[0], a[1:], b[1:]
		}
		if err := d.entry(join(path, cmp.Or(old.Name, now.Name)), old, now, depth); err != nil {
			return err
		}
	}
	return nil
}

func (d differ) read(path string, h plumbing.Hash) ([]objects.TreeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	entries, err := d.tree(h)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, "root"), err)
	}
	return entries, nil
}

// first compares the next names of two lists: negative if that of a comes first, positive if
// that of b does, zero if they are equal.
func first(a, b []objects.TreeEntry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Name, b[0].Name)
}

// entry compares the entries of one name; an absent entry is zero. If a file became a
// directory, the file was removed and the files of the directory were added.
func (d differ) entry(path string, old, now objects.TreeEntry, depth int) error {
	if old == now {
		return nil
	}
	var from, to plumbing.Hash
	var c Change
	if old.Mode.IsDir() {
		from = old.Hash
	} else if old.Name != "" {
		c.From = describe(old)
	}
	if now.Mode.IsDir() {
		to = now.Hash
	} else if now.Name != "" {
		c.To = describe(now)
	}
	if c != (Change{}) {
		c.Path = path
		d.emit(c)
	}
	return d.dirs(path, from, to, depth+1)
}

// describe returns the hash of an entry. If the entry is not an ordinary file it adds the kind,
// so that a change of the mode is a Change.
func describe(e objects.TreeEntry) string {
	switch {
	case e.Mode&fs.ModeSymlink != 0:
		return e.Hash.String() + " link"
	case e.Mode&fs.ModeIrregular != 0:
		return e.Hash.String() + " submodule"
	case e.Mode&0o111 != 0:
		return e.Hash.String() + " executable"
	}
	return e.Hash.String()
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
