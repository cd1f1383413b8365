package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Hasher returns the Git hash of the content of a file or directory. Equal hashes mean equal
// content, in every commit and under every name.
type Hasher interface {
	Hash(name string) (string, error)
}

// files is the tree of a commit. A symbolic link has the mode fs.ModeSymlink and a submodule
// fs.ModeIrregular. Neither is followed, and reading one is an error.
type files struct {
	objects reader
	root    plumbing.Hash
	time    time.Time
	commit  string
	// made are the directories of a merge that are in neither commit, and contents its files that
	// are in neither, by hash; nil without a merge.
	made     map[plumbing.Hash][]objects.TreeEntry
	contents map[plumbing.Hash][]byte
}

var (
	_ fs.ReadDirFS  = (*files)(nil)
	_ fs.ReadFileFS = (*files)(nil)
	_ fs.StatFS     = (*files)(nil)
	_ Hasher        = (*files)(nil)
)

var (
	errNotRegular = errors.New("is a symbolic link or a submodule, which are never followed")
	errIsDir      = errors.New("is a directory")
	errNotDir     = errors.New("is not a directory")
)

// find looks up a path, one directory at a time.
func (f *files) find(op, name string) (objects.TreeEntry, error) {
	if !fs.ValidPath(name) {
		return objects.TreeEntry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := objects.TreeEntry{Name: ".", Mode: fs.ModeDir | 0o555, Hash: f.root}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !at.Mode.IsDir() {
			return objects.TreeEntry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		entries, err := f.tree(at.Hash)
		if err != nil {
			return objects.TreeEntry{}, f.fail(op, name, err)
		}
		next, ok := lookup(entries, part)
		if !ok {
			return objects.TreeEntry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = next
	}
	return at, nil
}

// tree reads a directory; the result must not be changed.
func (f *files) tree(h plumbing.Hash) ([]objects.TreeEntry, error) {
	if entries, ok := f.made[h]; ok {
		return entries, nil
	}
	return f.objects.tree(h)
}

func (f *files) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("commit %s: %w", f.commit, err)}
}

func lookup(entries []objects.TreeEntry, name string) (objects.TreeEntry, bool) {
	low, high := 0, len(entries)
	for low < high {
		mid := (low + high) / 2
		switch strings.Compare(entries[mid].Name, name) {
		case 0:
			return entries[mid], true
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return objects.TreeEntry{}, false
}

// Hash implements Hasher.
func (f *files) Hash(name string) (string, error) {
	e, err := f.find("hash", name)
	if err != nil {
		return "", err
	}
	return e.Hash.String(), nil
}

// Stat implements fs.StatFS. It does not follow a symbolic link.
func (f *files) Stat(name string) (fs.FileInfo, error) {
	e, err := f.find("stat", name)
	if err != nil {
		return nil, err
	}
	return f.info(e, name)
}

// Lstat implements fs.ReadLinkFS; it is Stat.
func (f *files) Lstat(name string) (fs.FileInfo, error) { return f.Stat(name) }

// ReadLink implements fs.ReadLinkFS. It returns the target of a link, for messages.
func (f *files) ReadLink(name string) (string, error) {
	e, err := f.find("readlink", name)
	if err != nil {
		return "", err
	}
	if e.Mode&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	content, err := f.objects.object(plumbing.BlobObject, e.Hash)
	if err != nil {
		return "", f.fail("readlink", name, err)
	}
	return string(content), nil
}

// ReadFile returns a regular file's content.
func (f *files) ReadFile(name string) ([]byte, error) {
	e, err := f.find("read", name)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Mode.IsDir():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDir}
	case !e.Mode.IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	if content, ok := f.contents[e.Hash]; ok {
		return bytes.Clone(content), nil
	}
	content, err := f.objects.object(plumbing.BlobObject, e.Hash)
	if err != nil {
		return nil, f.fail("read", name, err)
	}
	return content, nil
}

// ReadDir returns all entries of a directory sorted by name, or an error.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := f.find("readdir", name)
	if err != nil {
		return nil, err
	}
	return f.list(e, name)
}

func (f *files) list(e objects.TreeEntry, name string) ([]fs.DirEntry, error) {
	if !e.Mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	entries, err := f.tree(e.Hash)
	if err != nil {
		return nil, f.fail("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(entries))
	for i, below := range entries {
		out[i] = dirEntry{f, below, name}
	}
	return out, nil
}

// Open opens a regular file or a directory.
func (f *files) Open(name string) (fs.File, error) {
	e, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	info, err := f.info(e, name)
	if err != nil {
		return nil, err
	}
	if e.Mode.IsDir() {
		list, err := f.list(e, name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: info, name: name, rest: list}, nil
	}
	content, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info, Reader: bytes.NewReader(content)}, nil
}

func (f *files) info(e objects.TreeEntry, name string) (fs.FileInfo, error) {
	i := fileInfo{entry: e, time: f.time}
	if e.Mode.IsDir() || e.Mode&fs.ModeIrregular != 0 {
		return i, nil
	}
	if content, ok := f.contents[e.Hash]; ok {
		i.size = int64(len(content))
		return i, nil
	}
	size, err := f.objects.size(e.Hash)
	if err != nil {
		return nil, f.fail("stat", name, err)
	}
	i.size = size
	return i, nil
}

type fileInfo struct {
	entry objects.TreeEntry
	size  int64
	time  time.Time
}

func (i fileInfo) Name() string       { return i.entry.Name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.entry.Mode }
func (i fileInfo) ModTime() time.Time { return i.time }
func (i fileInfo) IsDir() bool        { return i.entry.Mode.IsDir() }

// Sys returns the Git hash of the content, a string.
func (i fileInfo) Sys() any { return i.entry.Hash.String() }

type dirEntry struct {
	files *files
	entry objects.TreeEntry
	dir   string
}

func (d dirEntry) Name() string      { return d.entry.Name }
func (d dirEntry) IsDir() bool       { return d.entry.Mode.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.entry.Mode.Type() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

// Info implements fs.DirEntry. The size is read when it is needed.
func (d dirEntry) Info() (fs.FileInfo, error) {
	name := d.entry.Name
	if d.dir != "." {
		name = d.dir + "/" + name
	}
	return d.files.info(d.entry, name)
}

type openFile struct {
	info fs.FileInfo
	*bytes.Reader
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFile) Close() error               { return nil }

type openDir struct {
	info fs.FileInfo
	name string
	rest []fs.DirEntry
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.name, Err: errIsDir}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(o.rest) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(o.rest) {
		n = len(o.rest)
	}
	list := o.rest[:n]
	o.rest = o.rest[n:]
	return list, nil
}
