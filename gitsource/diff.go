package gitsource

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A pathChange is one path that differs between two trees. from is empty if the path was added,
// to if it was removed.
type pathChange struct {
	path     string
	from, to string
}

// A treeReader reads a directory; the result is sorted by name and must not be changed.
type treeReader func(plumbing.Hash) ([]object.TreeEntry, error)

// Git stores equal directories once, so that a few of them make any number of paths. What two trees differ in may take
// maxDiffCost altogether, where each differing file or directory takes entryCost and the length of its path.
const (
	maxDiffCost = 256 * mib
	entryCost   = 100
)

// readDir reads a directory at a path; the zero hash stands for an empty one.
func (read treeReader) readDir(path string, h plumbing.Hash, depth int) ([]object.TreeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	if depth > objects.MaxDepth {
		return nil, fmt.Errorf("%s: directories nest more than %d deep", path, objects.MaxDepth)
	}
	entries, err := read(h)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, "root"), err)
	}
	return entries, nil
}

// diffTrees returns the files, links and submodules that differ between two trees, sorted by
// path; the zero hash stands for an empty tree. Directories with the same hash in both are not
// read. An object that cannot be read is an error, never a difference; so are more differences than maxDiffCost allows.
//
// If a file became a directory, the file was removed and the files of the directory were added.
func diffTrees(read treeReader, from, to plumbing.Hash) ([]pathChange, error) {
	var changes []pathChange
	cost := 0
	var compare func(dir string, from, to plumbing.Hash, depth int) error
	compare = func(dir string, from, to plumbing.Hash, depth int) error {
		if from == to {
			return nil
		}
		before, err := read.readDir(dir, from, depth)
		if err != nil {
			return err
		}
		after, err := read.readDir(dir, to, depth)
		if err != nil {
			return err
		}
		for name, e := range byName(before, after) {
			if e[0] == e[1] {
				continue
			}
			path := strings.TrimPrefix(dir+"/"+name, "/")
			if cost += entryCost + len(path); cost > maxDiffCost {
				return fmt.Errorf("%w: %d files have changed up to %.100s...; push fewer at a time", ErrTooLarge, len(changes), path)
			}
			if c := (pathChange{path, describe(e[0]), describe(e[1])}); c.from != c.to {
				changes = append(changes, c)
			}
			if err := compare(path, dirHash(e[0]), dirHash(e[1]), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := compare("", from, to, 0); err != nil {
		return nil, err
	}
	slices.SortFunc(changes, func(a, b pathChange) int { return strings.Compare(a.path, b.path) })
	return changes, nil
}

// byName returns the names in several directories, in order, each with its entry in every one of
// them; an absent entry is zero. The entries are valid until the next name.
func byName(dirs ...[]object.TreeEntry) iter.Seq2[string, []object.TreeEntry] {
	return func(yield func(string, []object.TreeEntry) bool) {
		entries := make([]object.TreeEntry, len(dirs))
		for {
			next := ""
			for _, d := range dirs {
				if len(d) > 0 && (next == "" || d[0].Name < next) {
					next = d[0].Name
				}
			}
			if next == "" {
				return
			}
			for i, d := range dirs {
				entries[i] = object.TreeEntry{}
				if len(d) > 0 && d[0].Name == next {
					entries[i], dirs[i] = d[0], d[1:]
				}
			}
			if !yield(next, entries) {
				return
			}
		}
	}
}

// dirHash returns the hash of a directory; zero for anything else.
func dirHash(e object.TreeEntry) plumbing.Hash {
	if e.Mode != filemode.Dir {
		return plumbing.ZeroHash
	}
	return e.Hash
}

// describe returns the hash of an entry. If the entry is not an ordinary file it adds the kind,
// so that a change of the mode counts as a difference. It is empty for a directory or an absent
// entry.
func describe(e object.TreeEntry) string {
	switch e.Mode {
	case filemode.Regular:
		return e.Hash.String()
	case filemode.Symlink:
		return e.Hash.String() + " link"
	case filemode.Submodule:
		return e.Hash.String() + " submodule"
	case filemode.Executable:
		return e.Hash.String() + " executable"
	}
	return ""
}
