package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	gitconfig "github.com/go-git/go-git/v5/config"

	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// FindWorkTree returns the root of the working tree that contains a directory, and the
// slash-separated path of the directory in it. A directory that is in no working tree is its
// own root.
func FindWorkTree(dir string) (top, within string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	for top = dir; ; top = filepath.Dir(top) {
		if hasRepository(top) {
			within, err := filepath.Rel(top, dir)
			return top, filepath.ToSlash(within), err
		}
		if top == filepath.Dir(top) {
			return dir, ".", nil
		}
	}
}

// OpenWorkTree returns the files of the working tree that contains a directory, its root, and the path of the directory in it, as
// FindWorkTree and WorkTree do. It is an error if dir is not a directory.
func OpenWorkTree(dir string) (files fs.FS, top, within string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, "", "", err
	}
	if !info.IsDir() {
		return nil, "", "", fmt.Errorf("%s is not a directory", dir)
	}
	if top, within, err = FindWorkTree(dir); err != nil {
		return nil, "", "", err
	}
	files, err = WorkTree(top)
	return files, top, within, err
}

// hasRepository reports whether Git treats a directory as the root of a working tree.
func hasRepository(dir string) bool {
	git := filepath.Join(dir, ".git")
	if info, err := os.Lstat(git); err != nil || !info.Mode().IsRegular() {
		return err == nil && remote.IsRepository(git)
	}
	// a file .git belongs to a linked working tree or a submodule
	content, err := os.ReadFile(git)
	return err == nil && bytes.HasPrefix(content, []byte("gitdir:"))
}

// WorkTree returns the files of a working tree as a commit of all of them would have them:
// submodules and nested repositories have the mode fs.ModeIrregular, and what Git does not
// record is not listed (its own directory, sockets, named pipes and devices). Directories and
// files are read when they are opened.
func WorkTree(top string) (fs.FS, error) {
	w := &workTree{FS: os.DirFS(top), top: top}
	text, err := os.ReadFile(filepath.Join(top, ".gitmodules"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	modules := gitconfig.NewModules()
	if modules.Unmarshal(text) == nil { // Git also ignores a file that it cannot parse
		for _, m := range modules.Submodules {
			w.submodules = append(w.submodules, path.Clean(m.Path))
		}
	}
	return w, nil
}

type workTree struct {
	fs.FS
	top string
	// submodules are the paths in .gitmodules. The directory of a submodule that was not
	// fetched is empty.
	submodules []string
}

var _ fs.ReadDirFS = (*workTree)(nil)

// ReadDir implements fs.ReadDirFS.
func (w *workTree) ReadDir(name string) ([]fs.DirEntry, error) {
	found, err := fs.ReadDir(w.FS, name)
	if err != nil {
		return nil, err
	}
	entries := found[:0]
	for _, e := range found {
		switch mode := e.Type(); {
		case e.Name() == ".git":
		case mode.IsDir() && w.isSubmodule(path.Join(name, e.Name())):
			entries = append(entries, submodule{e})
		case mode.IsDir(), mode.IsRegular(), mode&fs.ModeSymlink != 0:
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func (w *workTree) isSubmodule(name string) bool {
	dir := filepath.Join(w.top, filepath.FromSlash(name))
	if hasRepository(dir) {
		return true
	}
	if !slices.Contains(w.submodules, name) {
		return false
	}
	below, err := os.ReadDir(dir)
	return err == nil && len(below) == 0
}

// A submodule is a directory that a commit records only as a name and a hash.
type submodule struct{ fs.DirEntry }

func (s submodule) IsDir() bool       { return false }
func (s submodule) Type() fs.FileMode { return fs.ModeIrregular }
