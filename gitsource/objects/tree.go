package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ParseTree parses a tree object into entries sorted by name. Trees with duplicate or ambiguous
// names are refused, so that a path never has two objects.
func ParseTree(h plumbing.Hash, raw []byte) ([]object.TreeEntry, error) {
	entries, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", h, err)
	}
	return entries, nil
}

func parseTree(raw []byte) ([]object.TreeEntry, error) {
	var entries []object.TreeEntry
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte(" "))
		name, rest, okName := bytes.Cut(rest, []byte{0})
		if !ok || !okName || len(rest) < 20 {
			return nil, errors.New("tree ends in the middle of an entry")
		}
		e := object.TreeEntry{Name: string(name)}
		copy(e.Hash[:], rest)
		raw = rest[20:]
		if e.Mode, ok = modes[strings.TrimLeft(string(mode), "0")]; !ok {
			return nil, fmt.Errorf("entry %q has unknown mode %q", e.Name, mode)
		}
		if e.Name == "" || e.Name == "." || e.Name == ".." || e.Name == ".git" || strings.Contains(e.Name, "/") {
			return nil, fmt.Errorf("entry name %q is not allowed", e.Name)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(entries); i++ {
		if entries[i].Name == entries[i-1].Name {
			return nil, fmt.Errorf("entry %q is there twice", entries[i].Name)
		}
	}
	return entries, nil
}

// modes has all modes that any version of Git has written.
var modes = map[string]filemode.FileMode{
	"40000":  filemode.Dir,
	"100644": filemode.Regular,
	"100664": filemode.Regular,
	"100755": filemode.Executable,
	"120000": filemode.Symlink,
	"160000": filemode.Submodule,
}

// A TreeCache caches parsed directories by hash, so that a directory that several commits share
// is parsed once.
type TreeCache struct {
	*agingCache[plumbing.Hash, []object.TreeEntry]
}

// NewTreeCache returns a cache for a total of limit directory entries.
func NewTreeCache(limit int) *TreeCache {
	return &TreeCache{newAging[plumbing.Hash, []object.TreeEntry](limit)}
}

// Read returns a directory from the cache, and on a miss reads it and caches it.
func (c *TreeCache) Read(h plumbing.Hash, read func(plumbing.Hash) ([]object.TreeEntry, error)) ([]object.TreeEntry, error) {
	if entries, ok := c.get(h); ok {
		return entries, nil
	}
	entries, err := read(h)
	if err != nil {
		return nil, err
	}
	c.put(h, entries, 1+len(entries))
	return entries, nil
}

// treeBytes is the maximum size of a directory in bytes, about 200,000 names.
const treeBytes = 16 * mib

// Tree reads a directory; see ParseTree.
func (s *Store) Tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	raw, err := s.Object(plumbing.TreeObject, h, treeBytes)
	if err != nil {
		return nil, err
	}
	return ParseTree(h, raw)
}

// Complete returns an error unless the store has every object of a tree. It skips directories
// that known reports as complete, and ends when ctx is done.
func Complete(ctx context.Context, s *Store, root plumbing.Hash, known func(plumbing.Hash) bool) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(h plumbing.Hash, path string, depth int) error
	walk = func(h plumbing.Hash, path string, depth int) error {
		if seen[h] || known(h) {
			return nil
		}
		seen[h] = true
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if depth > MaxDepth {
			return fmt.Errorf("%.100s...: directories nest more than %d deep", path, MaxDepth)
		}
		entries, err := s.Tree(h)
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(path, "root"), err)
		}
		for _, e := range entries {
			switch below := strings.TrimPrefix(path+"/"+e.Name, "/"); {
			case e.Mode == filemode.Dir:
				if err := walk(e.Hash, below, depth+1); err != nil {
					return err
				}
			case e.Mode == filemode.Submodule: // a submodule's commit is in another repository
			case !s.Has(e.Hash):
				return fmt.Errorf("%s: %w", below, &damageError{e.Hash, errMissing})
			}
		}
		return nil
	}
	return walk(root, "", 0)
}

// MaxDepth limits the nesting of directories. Git cannot check out deeper paths, and the loader
// has a lower limit of its own.
const MaxDepth = 2048
