package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// A Hasher is a file system with hashes of files and directories: equal hashes, equal content.
// A commit's tree is one. Otherwise files are read and hashed at every load.
type Hasher interface {
	Hash(name string) (string, error)
}

// A tree reads one commit. It follows no symbolic link and enters no submodule, whatever the
// file system does.
type tree struct {
	fsys   fs.FS
	hasher Hasher // nil if the file system has no hashes
	limits Limits
	dirs   *cache[dirKey, *listing]
	// open caches the listings of this load.
	open map[string]*listing
	// texts are the contents that were read for hashing, without a hasher.
	texts map[string][]byte
}

type dirKey struct{ path, hash string }

// A listing is one directory, sorted by name.
type listing struct {
	entries []entry
}

type entry struct {
	name string
	mode fs.FileMode
	// hash is set once it was needed. Equal directories have equal hashes below.
	hash string
}

func newTree(fsys fs.FS, limits Limits, dirs *cache[dirKey, *listing]) *tree {
	t := &tree{fsys: fsys, limits: limits, dirs: dirs, open: map[string]*listing{}, texts: map[string][]byte{}}
	t.hasher, _ = fsys.(Hasher)
	return t
}

// A readError says that the commit could not be read: this is not a problem of the commit, and
// nothing in it counts as deleted.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func unreadable(err error) error { return &readError{err} }

// list returns the entries of a directory.
func (t *tree) list(dir string) (*listing, error) {
	if l, ok := t.open[dir]; ok {
		return l, nil
	}
	l, err := t.readDir(dir)
	if err != nil {
		return nil, unreadable(err)
	}
	t.open[dir] = l
	return l, nil
}

func (t *tree) readDir(dir string) (*listing, error) {
	if t.hasher == nil {
		return t.listDir(dir)
	}
	hash, err := t.gitHash(dir)
	if err != nil {
		return nil, err
	}
	key := dirKey{dir, hash}
	if l, ok := t.dirs.get(key); ok {
		return l, nil
	}
	l, err := t.listDir(dir)
	if err == nil {
		t.dirs.put(key, l)
	}
	return l, err
}

func (t *tree) listDir(dir string) (*listing, error) {
	found, err := fs.ReadDir(t.fsys, dir)
	if err != nil {
		return nil, err
	}
	l := &listing{entries: make([]entry, len(found))}
	for i, e := range found {
		l.entries[i] = entry{name: e.Name(), mode: e.Type()}
	}
	sort.Slice(l.entries, func(i, j int) bool { return l.entries[i].name < l.entries[j].name })
	return l, nil
}

// gitHash returns a hash from the file system.
func (t *tree) gitHash(name string) (string, error) {
	if name == "." {
		return t.hasher.Hash(name)
	}
	l, err := t.list(path.Dir(name))
	if err != nil {
		return "", err
	}
	i := l.index(path.Base(name))
	if i < 0 {
		return "", &fs.PathError{Op: "hash", Path: name, Err: fs.ErrNotExist}
	}
	if e := &l.entries[i]; e.hash == "" {
		if e.hash, err = t.hasher.Hash(name); err != nil {
			e.hash = ""
			return "", err
		}
	}
	return l.entries[i].hash, nil
}

// index is the index of a name in the listing; -1 if it is not there.
func (l *listing) index(name string) int {
	i := sort.Search(len(l.entries), func(i int) bool { return l.entries[i].name >= name })
	if i < len(l.entries) && l.entries[i].name == name {
		return i
	}
	return -1
}

func (l *listing) find(name string) (entry, bool) {
	if i := l.index(name); i >= 0 {
		return l.entries[i], true
	}
	return entry{}, false
}

// lookup returns the mode of a path; zero for a regular file. If the path goes through
// something other than directories, at is where that is.
func (t *tree) lookup(name string) (mode fs.FileMode, at string, ok bool, err error) {
	mode, at = fs.ModeDir, "."
	if name == "." {
		return mode, at, true, nil
	}
	if !fs.ValidPath(name) {
		return 0, name, false, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !mode.IsDir() {
			return mode, at, !mode.IsRegular(), nil
		}
		l, err := t.list(at)
		if err != nil {
			return 0, at, false, err
		}
		e, there := l.find(part)
		if !there {
			return 0, name, false, nil
		}
		mode, at = e.mode, path.Join(at, part)
	}
	return mode, at, true, nil
}

// isFile reports whether a path is a regular file.
func (t *tree) isFile(name string) (bool, error) {
	mode, at, ok, err := t.lookup(name)
	return ok && at == name && mode.IsRegular(), err
}

// errTooLarge says that a file exceeds the limit.
type errTooLarge struct{ limit int64 }

func (e *errTooLarge) Error() string {
	return fmt.Sprintf("the file is larger than %s; split it, or raise limits.fileSize", bytesText(e.limit))
}

// read returns the content of a regular file; an *errTooLarge if it exceeds the limit, without
// reading more than that.
func (t *tree) read(name string) ([]byte, error) {
	if text, ok := t.texts[name]; ok {
		return text, nil
	}
	info, err := fs.Stat(t.fsys, name)
	if err != nil {
		return nil, unreadable(err)
	}
	if info.Size() > t.limits.FileSize {
		return nil, &errTooLarge{t.limits.FileSize}
	}
	data, err := t.readUpTo(name, t.limits.FileSize+1)
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(data)) > t.limits.FileSize {
		return nil, &errTooLarge{t.limits.FileSize}
	}
	return data, nil
}

// readUpTo reads a file at once if the file system can: its size is known.
func (t *tree) readUpTo(name string, limit int64) ([]byte, error) {
	if whole, ok := t.fsys.(fs.ReadFileFS); ok {
		return whole.ReadFile(name)
	}
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// hash identifies the content of a regular file, even one that is too large to be read.
func (t *tree) hash(name string) (string, error) {
	if t.hasher != nil {
		h, err := t.gitHash(name)
		if err != nil {
			return "", unreadable(err)
		}
		return h, nil
	}
	data, err := t.read(name)
	if tooLarge := (*errTooLarge)(nil); errors.As(err, &tooLarge) {
		return "too large", nil
	}
	if err != nil {
		return "", err
	}
	t.texts[name] = data
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// drop drops a text that was kept for its hash.
func (t *tree) drop(name string) { delete(t.texts, name) }
