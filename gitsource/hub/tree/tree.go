// Package tree reads the directories and files of one commit.
//
// It follows no symbolic link and enters no submodule, whatever the file system does. Files are
// read up to a limit.
package tree

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// A Hasher is a file system that knows the hashes of files, such as the tree of a commit. Equal
// hashes mean equal content. Files of other file systems are read and hashed at every load.
type Hasher interface {
	Hash(name string) (string, error)
}

// An Ender is a file system that cannot be read any more once Done is closed.
type Ender interface {
	Done() <-chan struct{}
}

// A Tree reads one commit, and lists each directory once, unless they are many large ones.
type Tree struct {
	fsys     fs.FS
	fileSize int64
	listings *listings
	plain    Plaintext
	mounts   map[string]fs.FS
}

// A Plaintext has the plain text of encrypted files.
type Plaintext interface {
	// Text returns the plain text of a file; the file as it is if it is not encrypted or cannot be decrypted.
	Text(name string, data []byte) []byte
	// Values are the values of the file that were encrypted when its text was returned last.
	Values(name string) []string
	// Version changes if the same file may have another plain text.
	Version() string
}

// A Listing is one directory, sorted by name.
type Listing []fs.DirEntry

// listings are directories that were listed, by their paths. One directory can have any number of paths.
type listings struct {
	dirs    map[string]Listing
	entries int
	// read is how many entries were listed, also those that are not kept.
	read int
}

// maxListed is the maximum number of entries in listings, which take up to 100 MiB, and maxRead that of those that are listed:
// files may refer to names in large directories in turns, so that these are listed again and again.
const (
	maxListed = 1_000_000
	maxRead   = 20 * maxListed
)

func (l *listings) add(dir string, listing Listing) {
	if l.entries += 1 + len(listing); l.entries > maxListed {
		l.dirs, l.entries = map[string]Listing{}, 1+len(listing)
	}
	l.dirs[dir] = listing
}

// New returns the tree of one commit. Files of more than fileSize bytes are not read.
func New(fsys fs.FS, fileSize int64) *Tree {
	return &Tree{fsys: fsys, fileSize: fileSize, listings: &listings{dirs: map[string]Listing{}}}
}

// Decrypted returns the tree with the plain text of encrypted files.
func (t *Tree) Decrypted(plain Plaintext) *Tree {
	t.plain = plain
	return t
}

// AsStored returns the tree with encrypted files as they are in the commit.
func (t *Tree) AsStored() *Tree {
	stored := *t
	stored.plain = nil
	return &stored
}

// Encrypted returns the values of a file that are encrypted in the commit.
func (t *Tree) Encrypted(name string) []string {
	if !t.decrypts(name) {
		return nil
	}
	return t.plain.Values(name)
}

// decrypts reports whether a file is decrypted if it is encrypted. Those of other commits are not: whoever writes them could
// otherwise have anything decrypted that was ever encrypted for the fleet.
func (t *Tree) decrypts(name string) bool { return t.plain != nil && t.MountOf(name) == "" }

// Mount adds the files of another commit below a directory, which has an @ in its name and need not exist.
func (t *Tree) Mount(dir string, fsys fs.FS) {
	if t.mounts == nil {
		t.mounts = map[string]fs.FS{}
	}
	t.mounts[dir] = fsys
}

// MountFile adds a file once more, as the only one of a directory, which has an @ in its name and need not exist.
func (t *Tree) MountFile(dir, name string) error {
	fsys, within := t.at(name)
	sub, err := fs.Sub(fsys, path.Dir(within))
	t.Mount(dir, onlyFile{sub, path.Base(within)})
	return err
}

// onlyFile is one file of a directory.
type onlyFile struct {
	fs.FS
	name string
}

// ReadDir implements fs.ReadDirFS.
func (o onlyFile) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return e.Name() != o.name }), err
}

// Mounted reports whether a directory is one of Mount.
func (t *Tree) Mounted(dir string) bool { return t.mounts[dir] != nil }

// MountOf returns the directory of Mount that a path is in; empty if there is none.
func (t *Tree) MountOf(name string) string {
	if len(t.mounts) == 0 || !strings.Contains(name, "@") {
		return ""
	}
	for dir := name; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if t.mounts[dir] != nil {
			return dir
		}
	}
	return ""
}

// at returns the file system that has a path, and the path in it.
func (t *Tree) at(name string) (fs.FS, string) {
	dir := t.MountOf(name)
	switch {
	case dir == "":
		return t.fsys, name
	case dir == name:
		return t.mounts[dir], "."
	}
	return t.mounts[dir], name[len(dir)+1:]
}

// Done is closed once the commit cannot be read any more; nil if that never happens.
func (t *Tree) Done() <-chan struct{} {
	if ender, ok := t.fsys.(Ender); ok {
		return ender.Done()
	}
	return nil
}

// List returns the entries of a directory. It is an error if too many were listed before.
func (t *Tree) List(dir string) (Listing, error) {
	if l, ok := t.listings.dirs[dir]; ok {
		return l, nil
	}
	if t.listings.read > maxRead {
		return nil, fmt.Errorf("%s: directories with %d million entries were listed up to here, which takes too long; refer to smaller directories", dir, maxRead/1_000_000)
	}
	fsys, name := t.at(dir)
	l, err := fs.ReadDir(fsys, name)
	if err != nil {
		return nil, err
	}
	t.listings.read += len(l)
	t.listings.add(dir, l)
	return l, nil
}

// Find returns the entry of a name; nil if there is none.
func (l Listing) Find(name string) fs.DirEntry {
	i, found := slices.BinarySearchFunc(l, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	if !found {
		return nil
	}
	return l[i]
}

// Only returns the listing with nothing but the entry of a name.
func (l Listing) Only(name string) Listing {
	if e := l.Find(name); e != nil {
		return Listing{e}
	}
	return nil
}

// Hash returns a hash of the content of a file.
func (t *Tree) Hash(name string) (string, error) {
	fsys, within := t.at(name)
	if hasher, ok := fsys.(Hasher); ok {
		hash, err := hasher.Hash(within)
		if t.decrypts(name) {
			hash += " " + t.plain.Version()
		}
		return hash, err
	}
	data, fault, err := t.Read(name)
	return fmt.Sprintf("%x %s", sha256.Sum256(data), fault), err
}

// Lookup returns the type of a path; zero for a regular file. If a part of the path is not a
// directory, at is the path of that part.
func (t *Tree) Lookup(name string) (mode fs.FileMode, at string, ok bool, err error) {
	mode, at = fs.ModeDir, "."
	if name == "." {
		return mode, at, true, nil
	}
	if !fs.ValidPath(name) {
		return 0, name, false, nil
	}
	rest := name
	if root := t.MountOf(name); root == name {
		return mode, name, true, nil
	} else if root != "" {
		at, rest = root, name[len(root)+1:]
	}
	for part := range strings.SplitSeq(rest, "/") {
		if !mode.IsDir() {
			return mode, at, !mode.IsRegular(), nil
		}
		l, err := t.List(at)
		if err != nil {
			return 0, at, false, err
		}
		e := l.Find(part)
		if e == nil {
			return 0, name, false, nil
		}
		mode, at = e.Type(), path.Join(at, part)
	}
	return mode, at, true, nil
}

// IsFile reports whether a path is a regular file.
func (t *Tree) IsFile(name string) (bool, error) {
	mode, at, ok, err := t.Lookup(name)
	return ok && at == name && mode.IsRegular(), err
}

// Read returns the content of a regular file. If the file exceeds the size limit, fault says so.
// An error means that the commit could not be read, which is no mistake in the commit: no object
// counts as deleted because of it.
func (t *Tree) Read(name string) (data []byte, fault string, err error) {
	fsys, within := t.at(name)
	info, err := fs.Stat(fsys, within)
	if err != nil {
		return nil, "", err
	}
	if info.Size() <= t.fileSize {
		if data, err = fs.ReadFile(fsys, within); err != nil {
			return nil, "", err
		}
	}
	if max(info.Size(), int64(len(data))) > t.fileSize {
		return nil, fmt.Sprintf("the file is larger than %s; split it, or raise limits.fileSize", limit.Size(t.fileSize)), nil
	}
	if t.decrypts(name) {
		data = t.plain.Text(name, data)
	}
	return data, "", nil
}
