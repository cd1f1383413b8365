package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// readDir reads a directory as a commit of the repository that it is part of,
// with the directory as the path that is followed: kustomizations may refer to
// what is beside it, the ignore files above it are in force, and problems name
// files as the repository does. A directory of no repository is taken for one.
func readDir(dir string, o hub.Options) (*hub.Snapshot, error) {
	top, within, err := repositoryOf(dir)
	if err != nil {
		return nil, err
	}
	o.Path = path.Join(within, o.Path)
	s, err := hub.NewLoader(o).Load(hub.Commit{}, os.DirFS(top))
	var bad *hub.LoadError
	if err != nil && !errors.As(err, &bad) {
		return nil, fmt.Errorf("read %s: %s", dir, strings.TrimPrefix(err.Error(), "load commit : "))
	}
	return s, err
}

// repositoryOf finds the working tree that a directory is in, and where in it.
func repositoryOf(dir string) (top, within string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", err
	}
	if !info.IsDir() {
		return "", "", fmt.Errorf("%s is not a directory", dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	for top = dir; ; top = filepath.Dir(top) {
		// A file .git is that of a linked working tree, or of a submodule.
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			within, err := filepath.Rel(top, dir)
			return top, filepath.ToSlash(within), err
		}
		if top == filepath.Dir(top) {
			return dir, ".", nil
		}
	}
}
