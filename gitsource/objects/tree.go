package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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

// maxName is the maximum length of a name in bytes. No common file system has longer ones: most end at 255 bytes, and those of
// 255 UTF-16 units at 765 bytes. So git cannot check them out either.
const maxName = 1024

func parseTree(raw []byte) ([]object.TreeEntry, error) {
	var entries []object.TreeEntry
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte(" "))
		name, rest, okName := bytes.Cut(rest, []byte{0})
		if !ok || !okName || len(rest) < 20 {
			return nil, errors.New("tree ends in the middle of an entry")
		}
		if len(name) > maxName {
			return nil, fmt.Errorf("entry %.40q... has a name of %d bytes, at most %d", name, len(name), maxName)
		}
		e := object.TreeEntry{Name: string(name)}
		copy(e.Hash[:], rest)
		raw = rest[20:]
		if e.Mode, ok = modes[strings.TrimLeft(string(mode), "0")]; !ok {
			return nil, fmt.Errorf("entry %q has unknown mode %.20q", e.Name, mode)
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
// is parsed once. It is safe for concurrent use.
type TreeCache struct {
	dirs *agingCache[plumbing.Hash, []object.TreeEntry]
	// found are entries of directories that are too large for dirs.
	found *agingCache[place, foundEntry]

	// last is the directory that was read last of those that are too large.
	mu      sync.Mutex
	last    plumbing.Hash
	entries []object.TreeEntry
}

// A place is a name in a directory.
type place struct {
	dir  plumbing.Hash
	name string
}

// A foundEntry is what a directory has under a name.
type foundEntry struct {
	object.TreeEntry
	exists bool
}

// foundEntries is the maximum number of cached lookups in large directories.
const foundEntries = 10_000

// NewTreeCache returns a cache for a total of limit directory entries, and one directory of more than half of them.
func NewTreeCache(limit int) *TreeCache {
	return &TreeCache{dirs: newAging[plumbing.Hash, []object.TreeEntry](limit), found: newAging[place, foundEntry](foundEntries)}
}

// Read returns a directory from the cache, and on a miss reads it and caches it.
func (c *TreeCache) Read(h plumbing.Hash, read func(plumbing.Hash) ([]object.TreeEntry, error)) ([]object.TreeEntry, error) {
	if entries, ok := c.dirs.get(h); ok {
		return entries, nil
	}
	if entries := c.large(h); entries != nil {
		return entries, nil
	}
	entries, err := read(h)
	if err != nil {
		return nil, err
	}
	if weight := 1 + len(entries); weight <= c.dirs.limit {
		c.dirs.put(h, entries, weight)
	} else {
		c.mu.Lock()
		c.last, c.entries = h, entries
		c.mu.Unlock()
	}
	return entries, nil
}

// large returns a directory if it is the large one that was read last.
func (c *TreeCache) large(h plumbing.Hash) []object.TreeEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != h {
		return nil
	}
	return c.entries
}

// Find returns the entry of a name in a directory, and false if there is none. A path through several large directories is
// looked up again without parsing them.
func (c *TreeCache) Find(h plumbing.Hash, name string, read func(plumbing.Hash) ([]object.TreeEntry, error)) (object.TreeEntry, bool, error) {
	at := place{h, name}
	if e, ok := c.found.get(at); ok {
		return e.TreeEntry, e.exists, nil
	}
	entries, err := c.Read(h, read)
	if err != nil {
		return object.TreeEntry{}, false, err
	}
	e, exists := FindEntry(entries, name)
	if 1+len(entries) > c.dirs.limit {
		c.found.put(at, foundEntry{e, exists}, 1)
	}
	return e, exists, nil
}

// FindEntry returns the entry of a name among those of a directory.
func FindEntry(entries []object.TreeEntry, name string) (object.TreeEntry, bool) {
	i, ok := slices.BinarySearchFunc(entries, name, func(e object.TreeEntry, name string) int { return cmp.Compare(e.Name, name) })
	if !ok {
		return object.TreeEntry{}, false
	}
	return entries[i], true
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
