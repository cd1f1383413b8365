package objects

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// MaxDepth limits the nesting of directories. Git cannot check out deeper paths, and the loader
// has a lower limit of its own.
const MaxDepth = 2048

// WalkTrees reads a tree and the directories below it, each hash once, and calls entry with each entry of them. It leaves out
// directories for which skip returns true, and ends at the first error, to which it adds the path, or when ctx is done.
//
// It keeps 28 bytes of each directory, and the entries of one.
func WalkTrees(ctx context.Context, read func(plumbing.Hash) ([]object.TreeEntry, error), root plumbing.Hash, skip func(plumbing.Hash) bool, entry func(object.TreeEntry) error) error {
	w := treeWalk{read: read}
	seen := map[plumbing.Hash]bool{}
	var waiting []int32
	add := func(d walkedDir) {
		if !seen[d.hash] && !skip(d.hash) {
			seen[d.hash] = true
			waiting = append(waiting, int32(len(w.dirs))) //nolint:gosec // a pack has fewer objects
			w.dirs = append(w.dirs, d)
		}
	}
	add(walkedDir{hash: root, parent: -1})
	for len(waiting) > 0 {
		at := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if err := context.Cause(ctx); err != nil {
			return err
		}
		d := w.dirs[at]
		if d.depth > MaxDepth {
			return fmt.Errorf("%.100s...: directories nest more than %d deep", w.path(at), MaxDepth)
		}
		entries, err := read(d.hash)
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(w.path(at), "root"), err)
		}
		for _, e := range entries {
			if err := entry(e); err != nil {
				return fmt.Errorf("%s: %w", path.Join(w.path(at), e.Name), err)
			}
		}
		for i, e := range slices.Backward(entries) { // so that the first is read next, as it was stored
			if e.Mode == filemode.Dir {
				add(walkedDir{e.Hash, at, int32(i), d.depth + 1}) //nolint:gosec // treeBytes allows fewer entries
			}
		}
	}
	return nil
}

// A treeWalk has the directories that were found.
type treeWalk struct {
	read func(plumbing.Hash) ([]object.TreeEntry, error)
	dirs []walkedDir
}

// A walkedDir is a directory, and where it was found: the position of the directory above, and its position in that.
type walkedDir struct {
	hash          plumbing.Hash
	parent, index int32
	depth         int16
}

// maxPath limits the length of a path in an error.
const maxPath = 500

// path returns the path of a directory, for an error. The end of a long one is missing.
func (w *treeWalk) path(at int32) string {
	var chain []int32
	for ; w.dirs[at].parent >= 0; at = w.dirs[at].parent {
		chain = append(chain, at)
	}
	name := ""
	for _, at := range slices.Backward(chain) {
		d := w.dirs[at]
		entries, err := w.read(w.dirs[d.parent].hash)
		if err != nil || len(name) > maxPath {
			return name + "/..."
		}
		name = path.Join(name, entries[d.index].Name)
	}
	return name
}

// Complete returns an error unless the store has every object of a tree. It skips directories
// that known reports as complete, and ends when ctx is done.
func Complete(ctx context.Context, s *Store, root plumbing.Hash, known func(plumbing.Hash) bool) error {
	return WalkTrees(ctx, s.Tree, root, known, func(e object.TreeEntry) error {
		// a submodule's commit is in another repository
		if e.Mode != filemode.Submodule && !s.Has(e.Hash) {
			return &damageError{e.Hash, errMissing}
		}
		return nil
	})
}
