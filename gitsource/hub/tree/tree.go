// Package tree reads the directories and files of one commit.
//
// It follows no symbolic link and enters no submodule, whatever the file system does. Listings
// are cached by their hashes, and files are read up to a limit.
package tree

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/cache"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// A Hasher is a file system that knows the hashes of files and directories, such as the tree of
// a commit. Equal hashes mean equal content. Files of other file systems are read and hashed at
// every load.
type Hasher interface {
	Hash(name string) (string, error)
}

// A Tree reads one commit.
type Tree struct {
	fsys   fs.FS
	hasher Hasher // nil if the file system has no hashes
	// fileSize is the maximum size of a file that is read.
	fileSize int64
	dirs     *cache.Cache[Key, *Listing]
	// open caches the listings of this load.
	open map[string]*Listing
}

// A Key identifies the content of a directory.
type Key struct{ path, hash string }

// A Listing is one directory, sorted by name.
type Listing struct {
	Entries []Entry
}

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Mode fs.FileMode
	// hash is set when it is first needed. Equal directories have equal hashes below.
	hash string
}

// New returns the tree of one commit. Files of more than fileSize bytes are not read; listings are
// kept in dirs if the file system has hashes.
func New(fsys fs.FS, fileSize int64, dirs *cache.Cache[Key, *Listing]) *Tree {
	t := &Tree{fsys: fsys, fileSize: fileSize, dirs: dirs, open: map[string]*Listing{}}
	t.hasher, _ = fsys.(Hasher)
	return t
}

// List returns the entries of a directory.
func (t *Tree) List(dir string) (*Listing, error) {
	if l, ok := t.open[dir]; ok {
		return l, nil
	}
	l, err := t.readDir(dir)
	if err != nil {
		return nil, err
	}
	t.open[dir] = l
	return l, nil
}

func (t *Tree) readDir(dir string) (*Listing, error) {
	if t.hasher == nil {
		return t.listDir(dir)
	}
	hash, err := t.Hash(dir)
	if err != nil {
		return nil, err
	}
	key := Key{dir, hash}
	if l, ok := t.dirs.Get(key); ok {
		return l, nil
	}
	l, err := t.listDir(dir)
	if err == nil {
		t.dirs.Put(key, l)
	}
	return l, err
}

func (t *Tree) listDir(dir string) (*Listing, error) {
	found, err := fs.ReadDir(t.fsys, dir)
	if err != nil {
		return nil, err
	}
	l := &Listing{Entries: make([]Entry, len(found))}
	for i, e := range found {
		l.Entries[i] = Entry{Name: e.Name(), Mode: e.Type()}
	}
	return l, nil
}

// Hash returns the hash of a file, or of a directory if the file system has hashes.
func (t *Tree) Hash(name string) (string, error) {
	if t.hasher == nil {
		data, fault, err := t.Read(name)
		return fmt.Sprintf("%x %s", sha256.Sum256(data), fault), err
	}
	if name == "." {
		return t.hasher.Hash(name)
	}
	l, err := t.List(path.Dir(name))
	if err != nil {
		return "", err
	}
	i, there := l.index(path.Base(name))
	if !there {
		return "", &fs.PathError{Op: "hash", Path: name, Err: fs.ErrNotExist}
	}
	e := &l.Entries[i]
	if e.hash == "" {
		e.hash, err = t.hasher.Hash(name)
	}
	return e.hash, err
}

func (l *Listing) index(name string) (i int, there bool) {
	return slices.BinarySearchFunc(l.Entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
}

// Find returns the entry of a name.
func (l *Listing) Find(name string) (Entry, bool) {
	if i, there := l.index(name); there {
		return l.Entries[i], true
	}
	return Entry{}, false
}

// Lookup returns the mode of a path; zero for a regular file. If a part of the path is not a
// directory, at is the path of that part.
func (t *Tree) Lookup(name string) (mode fs.FileMode, at string, ok bool, err error) {
	mode, at = fs.ModeDir, "."
	if name == "." {
		return mode, at, true, nil
	}
	if !fs.ValidPath(name) {
		return 0, name, false, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !mode.IsDir() {
			return mode, at, !mode.IsRegular(), nil
		}
		l, err := t.List(at)
		if err != nil {
			return 0, at, false, err
		}
		e, there := l.Find(part)
		if !there {
			return 0, name, false, nil
		}
		mode, at = e.Mode, path.Join(at, part)
	}
	return mode, at, true, nil
}

// IsFile reports whether a path is a regular file.
func (t *Tree) IsFile(name string) (bool, error) {
	mode, at, ok, err := t.Lookup(name)
	return ok && at == name && mode.IsRegular(), err
}

// Read returns the content of a regular file. If the file exceeds the size limit, it reads no
// more than that, and fault says so. An error means that the commit could not be read, which is
// no mistake in the commit: no object counts as deleted because of it.
func (t *Tree) Read(name string) (data []byte, fault string, err error) {
	info, err := fs.Stat(t.fsys, name)
	if err != nil {
		return nil, "", err
	}
	if info.Size() <= t.fileSize {
		if data, err = t.readUpTo(name, t.fileSize+1); err != nil {
			return nil, "", err
		}
	}
	if max(info.Size(), int64(len(data))) > t.fileSize {
		return nil, fmt.Sprintf("the file is larger than %s; split it, or raise limits.fileSize", limit.Size(t.fileSize)), nil
	}
	return data, "", nil
}

// readUpTo reads a file in one call if the file system can, since its size is known.
func (t *Tree) readUpTo(name string, most int64) ([]byte, error) {
	if whole, ok := t.fsys.(fs.ReadFileFS); ok {
		return whole.ReadFile(name)
	}
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
