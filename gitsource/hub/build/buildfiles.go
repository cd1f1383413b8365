package build

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// buildFiles is the file system of one build: the files that its kustomizations refer to,
// read-only. Closing it ends a build that takes too long, since all reads then fail.
type buildFiles struct {
	files  map[string][]byte
	dirs   map[string]bool
	closed atomic.Bool
}

var _ filesys.FileSystem = (*buildFiles)(nil)

var (
	errClosed   = errors.New("the build takes too long")
	errReadOnly = errors.New("a build writes no files")
)

func newBuildFiles() *buildFiles {
	return &buildFiles{files: map[string][]byte{}, dirs: map[string]bool{"/": true}}
}

// add adds a file at an absolute path, before the build begins.
func (f *buildFiles) add(name string, data []byte) {
	f.files[name] = data
	for dir := path.Dir(name); !f.dirs[dir]; dir = path.Dir(dir) {
		f.dirs[dir] = true
	}
}

// at returns the absolute path of a name.
func at(name string) string { return path.Clean("/" + name) }

// ReadFile returns a copy, since kustomize may modify it.
func (f *buildFiles) ReadFile(name string) ([]byte, error) {
	if f.closed.Load() {
		return nil, errClosed
	}
	data, ok := f.files[at(name)]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return append([]byte(nil), data...), nil
}

// CleanedAbs splits a path into its directory and its file name.
func (f *buildFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	full := at(name)
	if f.dirs[full] {
		return filesys.ConfirmedDir(full), "", nil
	}
	if _, ok := f.files[full]; !ok {
		return "", "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return filesys.ConfirmedDir(path.Dir(full)), path.Base(full), nil
}

// IsDir reports whether a path is a directory.
func (f *buildFiles) IsDir(name string) bool { return f.dirs[at(name)] }

// Exists reports whether a path exists.
func (f *buildFiles) Exists(name string) bool {
	_, isFile := f.files[at(name)]
	return isFile || f.IsDir(name)
}

// ReadDir lists the names in a directory.
func (f *buildFiles) ReadDir(name string) ([]string, error) {
	dir := at(name)
	if !f.dirs[dir] {
		return nil, fmt.Errorf("list %s: %w", name, fs.ErrNotExist)
	}
	var names []string
	for _, full := range f.all() {
		if path.Dir(full) == dir && full != dir {
			names = append(names, path.Base(full))
		}
	}
	return names, nil
}

// all returns the paths of all files and directories, sorted.
func (f *buildFiles) all() []string {
	both := make(map[string]bool, len(f.files)+len(f.dirs))
	for name := range f.files {
		both[name] = true
	}
	for name := range f.dirs {
		both[name] = true
	}
	return slices.Sorted(maps.Keys(both))
}

// Glob returns the paths that match a pattern.
func (f *buildFiles) Glob(pattern string) ([]string, error) {
	var found []string
	for _, name := range f.all() {
		if ok, err := path.Match(at(pattern), name); err != nil {
			return nil, err
		} else if ok {
			found = append(found, name)
		}
	}
	return found, nil
}

// Walk is refused: kustomize walks only to copy repositories.
func (f *buildFiles) Walk(name string, _ filepath.WalkFunc) error {
	return fmt.Errorf("walk %s: %w", name, fs.ErrInvalid)
}

// Open is refused: kustomize reads files whole.
func (f *buildFiles) Open(name string) (filesys.File, error) {
	return nil, fmt.Errorf("open %s: %w", name, fs.ErrInvalid)
}

// Create is refused.
func (f *buildFiles) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (f *buildFiles) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (f *buildFiles) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (f *buildFiles) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (f *buildFiles) WriteFile(string, []byte) error { return errReadOnly }
