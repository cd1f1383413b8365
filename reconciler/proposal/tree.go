package proposal

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

// An editedTree is a tree in which some files have other content. New files are possible only
// in existing directories.
type editedTree struct {
	base  fs.FS
	files map[string][]byte // nil for a removed file
}

// A hasher is a tree with hashes, such as Git's. With them only changed files are parsed again.
type hasher interface {
	Hash(name string) (string, error)
}

// hashedTree is an editedTree on a tree that knows the hashes of its files.
type hashedTree struct {
	*editedTree
	hasher hasher
}

// treeWith returns a tree with some changes.
func treeWith(base fs.FS, changes []FileChange) fs.FS {
	t := &editedTree{base, map[string][]byte{}}
	for _, c := range changes {
		t.files[c.Path] = c.After
	}
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
func (t *editedTree) Open(name string) (fs.File, error) {
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
func (t *editedTree) ReadFile(name string) ([]byte, error) {
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
func (t *editedTree) Stat(name string) (fs.FileInfo, error) {
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
func (t *editedTree) ReadDir(name string) ([]fs.DirEntry, error) {
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
