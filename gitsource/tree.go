package gitsource

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

// An entry is one name in a directory.
type entry struct {
	name string
	mode fs.FileMode
	hash plumbing.Hash
}

// parseTree parses a tree object. It refuses duplicate and ambiguous names, so that a path has
// one object or none. The result is sorted by name.
func parseTree(raw []byte) ([]entry, error) {
	var entries []entry
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte(" "))
		name, rest, okName := bytes.Cut(rest, []byte{0})
		if !ok || !okName || len(rest) < 20 {
			return nil, errors.New("tree ends in the middle of an entry")
		}
		e := entry{name: string(name)}
		copy(e.hash[:], rest)
		raw = rest[20:]
		if e.mode, ok = modes[strings.TrimLeft(string(mode), "0")]; !ok {
			return nil, fmt.Errorf("entry %q has unknown mode %q", e.name, mode)
		}
		if e.name == "" || e.name == "." || e.name == ".." || e.name == ".git" || strings.Contains(e.name, "/") {
			return nil, fmt.Errorf("entry name %q is not allowed", e.name)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(entries); i++ {
		if entries[i].name == entries[i-1].name {
			return nil, fmt.Errorf("entry %q is there twice", entries[i].name)
		}
	}
	return entries, nil
}

// modes are all modes that any version of Git has written.
var modes = map[string]fs.FileMode{
	"40000":  fs.ModeDir | 0o555,
	"100644": 0o444,
	"100664": 0o444,
	"100755": 0o555,
	"120000": fs.ModeSymlink | 0o777,
	"160000": fs.ModeIrregular,
}

// A treeCache caches parsed directories by hash, so that one in several commits is read once.
type treeCache struct {
	*agingCache[plumbing.Hash, []entry]
}

// newTreeCache returns a cache of at most limit entries of directories.
func newTreeCache(limit int) *treeCache {
	return &treeCache{newAging[plumbing.Hash, []entry](limit)}
}

// treeBytes is the largest directory in bytes, which is some 200,000 names.
const treeBytes = 16 * mib

// read returns a directory from the cache or from a store.
func (c *treeCache) read(s *store, h plumbing.Hash) ([]entry, error) {
	if entries, ok := c.get(h); ok {
		return entries, nil
	}
	entries, err := readTree(s, h)
	if err != nil {
		return nil, err
	}
	c.put(h, entries, 1+len(entries))
	return entries, nil
}

func readTree(s *store, h plumbing.Hash) ([]entry, error) {
	raw, err := s.object(plumbing.TreeObject, h, treeBytes)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(raw)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", h, err)
	}
	return entries, nil
}

// complete returns an error unless the store has every object of a tree. It does not read
// directories that are known to be complete.
func complete(s *store, root plumbing.Hash, known func(plumbing.Hash) bool) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(h plumbing.Hash, path string, depth int) error
	walk = func(h plumbing.Hash, path string, depth int) error {
		if seen[h] || known(h) {
			return nil
		}
		seen[h] = true
		if depth > maxDepth {
			return fmt.Errorf("%.100s...: directories nest more than %d deep", path, maxDepth)
		}
		entries, err := readTree(s, h)
		if err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(path, "root"), err)
		}
		for _, e := range entries {
			switch below := join(path, e.name); {
			case e.mode.IsDir():
				if err := walk(e.hash, below, depth+1); err != nil {
					return err
				}
			case e.mode&fs.ModeIrregular != 0: // a submodule's commit lives elsewhere
			case !s.has(e.hash):
				return fmt.Errorf("%s: %w", below, &damageError{e.hash, errMissing})
			}
		}
		return nil
	}
	return walk(root, "", 0)
}

// maxDepth limits recursion into directories. Git cannot check out deeper paths. The loader has
// a lower limit of its own.
const maxDepth = 2048

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
