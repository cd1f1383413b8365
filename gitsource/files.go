package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// An objectReader reads objects of a repository.
type objectReader interface {
	// object returns the content of an object; the caller may change it.
	object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error)
	// size returns the size of an object without reading all of it.
	size(h plumbing.Hash) (int64, error)
	// tree returns a directory sorted by name; the result is shared and must not be changed.
	tree(h plumbing.Hash) ([]object.TreeEntry, error)
	// entry returns the entry of a name in a directory, and false if there is none.
	entry(dir plumbing.Hash, name string) (object.TreeEntry, bool, error)
}

// files is the tree of a commit. A symbolic link has the mode fs.ModeSymlink and a submodule
// fs.ModeIrregular. Neither is followed, and reading one is an error.
type files struct {
	// ctx ends the reads of packages that know no context.
	ctx     context.Context
	objects objectReader
	root    plumbing.Hash
	time    time.Time
	commit  string
}

var (
	_ fs.ReadDirFS  = (*files)(nil)
	_ fs.ReadFileFS = (*files)(nil)
	_ fs.ReadLinkFS = (*files)(nil)
	_ fs.StatFS     = (*files)(nil)
)

// Package hub reads only the files whose hashes have changed.
var _ interface {
	Hash(name string) (string, error)
} = (*files)(nil)

var (
	errNotRegular = errors.New("is a symbolic link or a submodule, which are never followed")
	errIsDir      = errors.New("is a directory")
	errNotDir     = errors.New("is not a directory")
)

// Done is closed when nothing can be read any more. Package hub ends builds then.
func (f *files) Done() <-chan struct{} { return f.ctx.Done() }

// find looks up a path, one directory at a time.
func (f *files) find(op, name string) (object.TreeEntry, error) {
	at := object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: f.root}
	if err := f.ctx.Err(); err != nil {
		return at, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !fs.ValidPath(name) {
		return at, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if at.Mode != filemode.Dir {
			return at, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		next, ok, err := f.objects.entry(at.Hash, part)
		if err != nil {
			return at, f.fail(op, name, err)
		}
		if !ok {
			return at, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = next
	}
	return at, nil
}

func (f *files) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("commit %s: %w", f.commit, err)}
}

// Hash returns the Git hash of the content of a file or directory. Equal hashes mean equal
// content, in every commit and under every name.
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
	if e.Mode != filemode.Symlink {
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
	switch e.Mode {
	case filemode.Dir:
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDir}
	case filemode.Symlink, filemode.Submodule:
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
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

func (f *files) list(e object.TreeEntry, name string) ([]fs.DirEntry, error) {
	if e.Mode != filemode.Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	entries, err := f.objects.tree(e.Hash)
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
	if e.Mode == filemode.Dir {
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

func (f *files) info(e object.TreeEntry, name string) (fs.FileInfo, error) {
	i := fileInfo{entry: e, time: f.time}
	if e.Mode == filemode.Dir || e.Mode == filemode.Submodule {
		return i, nil
	}
	var err error
	if i.size, err = f.objects.size(e.Hash); err != nil {
		return nil, f.fail("stat", name, err)
	}
	return i, nil
}

type fileInfo struct {
	entry object.TreeEntry
	size  int64
	time  time.Time
}

func (i fileInfo) Name() string       { return i.entry.Name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return fileMode(i.entry) }
func (i fileInfo) ModTime() time.Time { return i.time }
func (i fileInfo) IsDir() bool        { return i.entry.Mode == filemode.Dir }

// Sys returns the Git hash of the content, a string.
func (i fileInfo) Sys() any { return i.entry.Hash.String() }

type dirEntry struct {
	files *files
	entry object.TreeEntry
	dir   string
}

func (d dirEntry) Name() string      { return d.entry.Name }
func (d dirEntry) IsDir() bool       { return d.entry.Mode == filemode.Dir }
func (d dirEntry) Type() fs.FileMode { return fileMode(d.entry).Type() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

// Info implements fs.DirEntry. The size is read when it is needed.
func (d dirEntry) Info() (fs.FileInfo, error) {
	return d.files.info(d.entry, path.Join(d.dir, d.entry.Name))
}

// fileMode returns the mode of an entry, which nobody may write to.
func fileMode(e object.TreeEntry) fs.FileMode {
	switch e.Mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Submodule:
		return fs.ModeIrregular
	case filemode.Executable:
		return 0o555
	}
	return 0o444
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
