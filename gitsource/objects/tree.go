package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A TreeEntry is one entry of a directory.
type TreeEntry struct {
	Name string
	Mode fs.FileMode
	Hash plumbing.Hash
}

// ParseTree parses a tree object into entries sorted by name. Trees with duplicate or ambiguous
// names are refused, so that a path never has two objects.
func ParseTree(raw []byte) ([]TreeEntry, error) {
	var entries []TreeEntry
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte(" "))
		name, rest, okName := bytes.Cut(rest, []byte{0})
		if !ok || !okName || len(rest) < 20 {
			return nil, errors.New("tree ends in the middle of an entry")
		}
		e := TreeEntry{Name: string(name)}
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
	slices.SortFunc(entries, func(a, b TreeEntry) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(entries); i++ {
		if entries[i].Name == entries[i-1].Name {
			return nil, fmt.Errorf("entry %q is there twice", entries[i].Name)
		}
	}
	return entries, nil
}

// modes has all modes that any version of Git has written.
var modes = map[string]fs.FileMode{
	"40000":  fs.ModeDir | 0o555,
	"100644": 0o444,
	"100664": 0o444,
	"100755": 0o555,
	"120000": fs.ModeSymlink | 0o777,
	"160000": fs.ModeIrregular,
}

// A TreeCache caches parsed directories by hash, so that a directory that several commits share
// is parsed once.
type TreeCache struct {
	*agingCache[plumbing.Hash, []TreeEntry]
}

// NewTreeCache returns a cache for a total of limit directory entries.
func NewTreeCache(limit int) *TreeCache {
	return &TreeCache{newAging[plumbing.Hash, []TreeEntry](limit)}
}

// TreeBytes is the maximum size of a directory in bytes, about 200,000 names.
const TreeBytes = 16 * mib

// Read returns a directory from the cache, and on a miss reads it from the store and caches it.
func (c *TreeCache) Read(s *Store, h plumbing.Hash) ([]TreeEntry, error) {
	if entries, ok := c.get(h); ok {
		return entries, nil
	}
	entries, err := ReadTree(s, h)
	if err != nil {
		return nil, err
	}
	c.put(h, entries, 1+len(entries))
	return entries, nil
}

// ReadTree reads a directory from a store.
func ReadTree(s *Store, h plumbing.Hash) ([]TreeEntry, error) {
	raw, err := s.Object(plumbing.TreeObject, h, TreeBytes)
	if err != nil {
		return nil, err
	}
	entries, err := ParseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", h, err)
	}
	return entries, nil
}

// Complete returns an error unless the store has every object of a tree. It skips directories
// that known reports as complete.
func Complete(s *Store, root plumbing.Hash, known func(plumbing.Hash) bool) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(h plumbing.Hash, path string, depth int) error
	walk = func(h plumbing.Hash, path string, depth int) error {
		if seen[h] || known(h) {
			return nil
		}
		seen[h] = true
		if depth > MaxDepth {
			return fmt.Errorf("%.100s...: directories nest more than %d deep", path, MaxDepth)
		}
		entries, err := ReadTree(s, h)
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(path, "root"), err)
		}
		for _, e := range entries {
			switch below := strings.TrimPrefix(path+"/"+e.Name, "/"); {
			case e.Mode.IsDir():
				if err := walk(e.Hash, below, depth+1); err != nil {
					return err
				}
			case e.Mode&fs.ModeIrregular != 0: // a submodule's commit is in another repository
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
