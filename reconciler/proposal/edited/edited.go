// Package edited has trees of files in which some files are changed.
package edited

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// tree is a tree in which some files have other content.
type tree struct {
	base  fs.FS
	files map[string][]byte // nil for a removed file
}

// A hasher is a tree with hashes, such as Git's. With them only changed files are parsed again.
type hasher interface {
	Hash(name string) (string, error)
}

// hashedTree is a tree with edits on a tree that knows the hashes of its files.
type hashedTree struct {
	*tree
	hasher hasher
}

// Tree returns a tree in which some files have other content; nil for those that are removed. New files may be in new
// directories. If the tree knows the hashes of its files, as those of Git do, the result does as well.
func Tree(base fs.FS, files map[string][]byte) fs.FS {
	t := &tree{base, files}
	if h, ok := base.(hasher); ok {
		return &hashedTree{t, h}
	}
	return t
}

// Hash implements tree.Hasher. The hash of a changed file is never one of Git's.
func (t *hashedTree) Hash(name string) (string, error) {
	text, changed := t.files[name]
	switch {
	case !changed:
		return t.hasher.Hash(name)
	case text == nil:
		return "", &fs.PathError{Op: "hash", Path: name, Err: fs.ErrNotExist}
	}
	return fmt.Sprintf("edited:%x", sha256.Sum256(text)), nil
}

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	text, changed := t.files[name]
	switch {
	case !changed && t.isNewDir(name):
		list, err := t.ReadDir(name)
		return &editedDir{list, editedInfo{name: path.Base(name), dir: true}}, err
	case !changed:
		return t.base.Open(name)
	case text == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &editedFile{bytes.NewReader(text), editedInfo{path.Base(name), int64(len(text)), false}}, nil
}

// ReadFile implements fs.ReadFileFS.
func (t *tree) ReadFile(name string) ([]byte, error) {
	text, changed := t.files[name]
	switch {
	case !changed:
		return fs.ReadFile(t.base, name)
	case text == nil:
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(text), nil
}

// Stat implements fs.StatFS.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	text, changed := t.files[name]
	switch {
	case !changed && t.isNewDir(name):
		return editedInfo{name: path.Base(name), dir: true}, nil
	case !changed:
		return fs.Stat(t.base, name)
	case text == nil:
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return editedInfo{path.Base(name), int64(len(text)), false}, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(t.base, name)
	if err != nil && !t.isNewDir(name) {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { _, changed := t.files[path.Join(name, e.Name())]; return changed })
	for file, text := range t.files {
		rest, below := strings.CutPrefix(file, below(name))
		child, _, deeper := strings.Cut(rest, "/")
		if below && text != nil && !slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == child }) {
			list = append(list, fs.FileInfoToDirEntry(editedInfo{child, int64(len(text)), deeper}))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, nil
}

// below is what the paths of files in a directory begin with.
func below(dir string) string {
	if dir == "." {
		return ""
	}
	return dir + "/"
}

// isNewDir reports whether only new files are in a directory.
func (t *tree) isNewDir(name string) bool {
	for file, text := range t.files {
		if text != nil && strings.HasPrefix(file, below(name)) {
			_, err := fs.Stat(t.base, name)
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}

// An editedFile is an open file with new content.
type editedFile struct {
	io.Reader
	info editedInfo
}

func (f *editedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *editedFile) Close() error               { return nil }

// An editedDir is an open directory that only new files are in.
type editedDir struct {
	list []fs.DirEntry // those that were not read yet
	info editedInfo
}

func (d *editedDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *editedDir) Close() error               { return nil }
func (d *editedDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *editedDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.list)
	} else if len(d.list) == 0 {
		return nil, io.EOF
	}
	out := d.list[:min(n, len(d.list))]
	d.list = d.list[len(out):]
	return out, nil
}

type editedInfo struct {
	name string
	size int64
	dir  bool
}

func (i editedInfo) Name() string { return i.name }
func (i editedInfo) Size() int64  { return i.size }
func (i editedInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
func (editedInfo) ModTime() time.Time { return time.Time{} }
func (i editedInfo) IsDir() bool      { return i.dir }
func (editedInfo) Sys() any           { return nil }
