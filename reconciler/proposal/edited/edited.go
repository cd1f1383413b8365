// Package edited has trees of files in which some files are changed.
package edited

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
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

// Tree returns a tree in which some files have other content; nil for those that are removed. New files are possible only in
// existing directories. If the tree knows the hashes of its files, as those of Git do, the result does as well.
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
	case !changed:
		return t.base.Open(name)
	case text == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &editedFile{bytes.NewReader(text), editedInfo{path.Base(name), int64(len(text))}}, nil
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
	case !changed:
		return fs.Stat(t.base, name)
	case text == nil:
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return editedInfo{path.Base(name), int64(len(text))}, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(t.base, name)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { _, changed := t.files[path.Join(name, e.Name())]; return changed })
	for file, text := range t.files {
		if path.Dir(file) == name && text != nil {
			list = append(list, fs.FileInfoToDirEntry(editedInfo{path.Base(file), int64(len(text))}))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, nil
}

// An editedFile is an open file with new content.
type editedFile struct {
	io.Reader
	info editedInfo
}

func (f *editedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *editedFile) Close() error               { return nil }

type editedInfo struct {
	name string
	size int64
}

func (i editedInfo) Name() string     { return i.name }
func (i editedInfo) Size() int64      { return i.size }
func (editedInfo) Mode() fs.FileMode  { return 0o444 }
func (editedInfo) ModTime() time.Time { return time.Time{} }
func (editedInfo) IsDir() bool        { return false }
func (editedInfo) Sys() any           { return nil }
