package charts

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A listing has the names and sizes of the files of a chart.
type listing struct {
	digest string
	// dirs have the entries of the directories, sorted, and entries each of them by its path.
	dirs    map[string][]fs.DirEntry
	entries map[string]entry
}

// ignoreFile has been applied when the chart was packed, and Helm does not apply it again.
const ignoreFile = ".helmignore"

func list(digest string, content map[string][]byte) *listing {
	l := &listing{digest: digest, dirs: map[string][]fs.DirEntry{}, entries: map[string]entry{".": {name: ".", dir: true}}}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if name == ignoreFile {
			continue
		}
		e := entry{name: path.Base(name), size: int64(len(content[name]))}
		for at := name; ; e = (entry{name: path.Base(at), dir: true}) {
			if _, known := l.entries[at]; known {
				break
			}
			l.entries[at] = e
			dir := path.Dir(at)
			l.dirs[dir] = append(l.dirs[dir], e)
			at = dir
		}
	}
	for _, entries := range l.dirs {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return l
}

// An entry is a file or a directory.
type entry struct {
	name string
	size int64
	dir  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) Size() int64                { return e.size }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// files are the files of a chart. Their content is read when it is first needed: what is rendered already needs only the names.
type files struct {
	*listing
	read func() (map[string][]byte, error)

	mu      sync.Mutex
	content map[string][]byte
}

// Stat implements fs.StatFS.
func (f *files) Stat(name string) (fs.FileInfo, error) {
	if e, known := f.entries[name]; known {
		return e, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	if e, known := f.entries[name]; !known || !e.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(f.dirs[name]), nil
}

// ReadFile implements fs.ReadFileFS.
func (f *files) ReadFile(name string) ([]byte, error) {
	if e, known := f.entries[name]; !known || e.dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.content == nil {
		content, err := f.read()
		if err != nil {
			return nil, err
		}
		f.content = content
	}
	return slices.Clone(f.content[name]), nil
}

// Hash implements tree.Hasher.
func (f *files) Hash(name string) (string, error) {
	if _, known := f.entries[name]; !known {
		return "", &fs.PathError{Op: "hash", Path: name, Err: fs.ErrNotExist}
	}
	return f.digest + " " + name, nil
}

// Open implements fs.FS.
func (f *files) Open(name string) (fs.File, error) {
	e, known := f.entries[name]
	if !known {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if e.dir {
		return &directory{e, slices.Clone(f.dirs[name])}, nil
	}
	data, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &file{bytes.NewReader(data), e}, nil
}

// A file is an open file.
type file struct {
	*bytes.Reader
	entry entry
}

func (f *file) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *file) Close() error               { return nil }

// A directory is an open directory.
type directory struct {
	entry entry
	rest  []fs.DirEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.entry, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.entry.name, Err: errors.New("it is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	most := len(d.rest)
	if n > 0 && most == 0 {
		return nil, io.EOF
	}
	if n > 0 {
		most = min(n, most)
	}
	next := d.rest[:most]
	d.rest = d.rest[most:]
	return next, nil
}
