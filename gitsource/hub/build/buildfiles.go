package build

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// buildFiles is the file system of one build: the files that its kustomizations refer to.
// Closing it ends a build that takes too long, since all reads then fail.
type buildFiles struct {
	// FileSystem is empty. It has the methods that a build does not need. The files are not in
	// it, since it accepts only some characters in their names.
	filesys.FileSystem
	files  map[string][]byte
	dirs   map[string]bool
	closed atomic.Bool
}

var errClosed = errors.New("the build takes too long")

func newBuildFiles() *buildFiles {
	return &buildFiles{FileSystem: filesys.MakeFsInMemory(), files: map[string][]byte{}, dirs: map[string]bool{"/": true}}
}

// add adds a file at an absolute path, before the build begins.
func (f *buildFiles) add(name string, data []byte) {
	f.files[name] = data
	for dir := path.Dir(name); !f.dirs[dir]; dir = path.Dir(dir) {
		f.dirs[dir] = true
	}
}

// ReadFile returns a copy, since kustomize may modify it.
func (f *buildFiles) ReadFile(name string) ([]byte, error) {
	if f.closed.Load() {
		return nil, errClosed
	}
	data, ok := f.files[path.Clean("/"+name)]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(data), nil
}

// CleanedAbs splits a path into its directory and its file name.
func (f *buildFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	full := path.Clean("/" + name)
	if f.dirs[full] {
		return filesys.ConfirmedDir(full), "", nil
	}
	if _, ok := f.files[full]; !ok {
		return "", "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return filesys.ConfirmedDir(path.Dir(full)), path.Base(full), nil
}
