package gitsource

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	gitconfig "github.com/go-git/go-git/v5/config"

	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// FindWorkTree returns the root of the working tree that contains a directory, and the
// slash-separated path of the directory in it. A directory outside of a working tree is its own
// root.
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

// hasRepository reports whether Git treats a directory as the root of a working tree.
func hasRepository(dir string) bool {
	git := filepath.Join(dir, ".git")
	if info, err := os.Lstat(git); err != nil || !info.Mode().IsRegular() {
		return err == nil && remote.IsRepository(git)
	}
	// A file .git is that of a linked working tree, or of a submodule.
	content, err := os.ReadFile(git)
	return err == nil && bytes.HasPrefix(content, []byte("gitdir:"))
}

// WorkTree returns the files of a working tree as they would be in a commit of all of
// them: submodules and other repositories in it have the mode fs.ModeIrregular, and what
// Git does not record (its own directory, sockets, named pipes, devices) is not listed.
// Directories and files are read when they are opened.
func WorkTree(top string) (fs.FS, error) {
	w := &workTree{FS: os.DirFS(top), top: top}
	text, err := os.ReadFile(filepath.Join(top, ".gitmodules"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	modules := gitconfig.NewModules()
	if modules.Unmarshal(text) == nil { // Git ignores what it cannot read, too
		for _, m := range modules.Submodules {
			w.submodules = append(w.submodules, path.Clean(m.Path))
		}
	}
	return w, nil
}

type workTree struct {
	fs.FS
	top string
	// submodules are the paths in .gitmodules. The directory of one that was not fetched
	// is empty.
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

// A submodule is a directory of which a commit holds only a name and a hash.
type submodule struct{ fs.DirEntry }

func (s submodule) IsDir() bool       { return false }
func (s submodule) Type() fs.FileMode { return fs.ModeIrregular }
