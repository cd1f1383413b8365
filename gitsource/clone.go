package gitsource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Clone is a user's clone of the repository. Commits and branches can be added to it; the
// working tree is never changed.
type Clone struct{ repo *git.Repository }

// OpenClone opens the clone that contains a directory, or the bare clone in it.
func OpenClone(dir string) (*Clone, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repo, err = git.PlainOpen(dir) // a bare clone has no .git
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s is not in a clone of a Git repository", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the clone at %s: %w", dir, err)
	}
	return &Clone{repo}, nil
}

// Commit finds a commit by its hash, an abbreviated hash, a branch or a tag.
func (c *Clone) Commit(revision string) (Commit, error) {
	o, err := c.commit(revision)
	if err != nil {
		return Commit{}, err
	}
	raw := &plumbing.MemoryObject{}
	if err := o.Encode(raw); err != nil {
		return Commit{}, fmt.Errorf("commit %s: %w", revision, err)
	}
	r, err := raw.Reader()
	if err != nil {
		return Commit{}, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return Commit{}, err
	}
	parsed, err := objects.ParseCommit(o.Hash, text)
	if err != nil {
		return Commit{}, err
	}
	return publicCommit(parsed), nil
}

func (c *Clone) commit(revision string) (*object.Commit, error) {
	h, err := c.repo.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, fmt.Errorf("commit %s is not in this clone: %w", revision, ErrUnknownCommit)
	}
	o, err := c.repo.CommitObject(*h)
	if err != nil {
		return nil, fmt.Errorf("commit %s is not in this clone: %w", revision, ErrUnknownCommit)
	}
	return o, nil
}

// Files returns the tree of a commit. The file system reads from the clone on demand.
func (c *Clone) Files(revision string) (fs.FS, error) {
	o, err := c.commit(revision)
	if err != nil {
		return nil, err
	}
	t, err := o.Tree()
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", revision, err)
	}
	return &cloneFiles{tree: t, time: o.Committer.When}, nil
}

// Author returns user.name and user.email of Git's configuration for this clone; empty if they
// are not set.
func (c *Clone) Author() (name, email string) {
	cfg, err := c.repo.ConfigScoped(gitconfig.SystemScope)
	if err != nil {
		return "", ""
	}
	return cfg.User.Name, cfg.User.Email
}

// Differing returns those of the paths whose files differ between two commits.
func (c *Clone) Differing(one, other string, paths []string) ([]string, error) {
	a, b, err := c.trees(one, other)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range paths {
		if !sameEntry(entryOf(a, p), entryOf(b, p)) {
			out = append(out, p)
		}
	}
	return out, nil
}

// sameEntry compares files of two trees, of which either may be nil.
func sameEntry(a, b *object.TreeEntry) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Hash == b.Hash && a.Mode == b.Mode
}

func (c *Clone) trees(one, other string) (a, b *object.Tree, err error) {
	for _, at := range []struct {
		revision string
		tree     **object.Tree
	}{{one, &a}, {other, &b}} {
		o, err := c.commit(at.revision)
		if err == nil {
			*at.tree, err = o.Tree()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return a, b, nil
}

// entryOf returns the entry of a file; nil if there is no such file.
func entryOf(t *object.Tree, path string) *object.TreeEntry {
	e, err := t.FindEntry(path)
	if err != nil || e.Mode == filemode.Dir {
		return nil
	}
	return e
}

// cloneFiles is the tree of a commit in a clone.
type cloneFiles struct {
	tree *object.Tree
	time time.Time
}

// Open implements fs.FS.
func (f *cloneFiles) Open(name string) (fs.File, error) {
	fail := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	e := &object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: f.tree.Hash}
	if name != "." {
		var err error
		if e, err = f.tree.FindEntry(name); errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) {
			return fail(fs.ErrNotExist)
		} else if err != nil {
			return fail(err)
		}
	}
	open := &cloneFile{info: cloneInfo{entry: *e, at: f}}
	switch e.Mode {
	case filemode.Dir:
		t := f.tree
		if name != "." {
			var err error
			if t, err = f.tree.Tree(name); err != nil {
				return fail(err)
			}
		}
		for _, e := range t.Entries {
			open.entries = append(open.entries, fs.FileInfoToDirEntry(cloneInfo{entry: e, at: f, dir: t}))
		}
	case filemode.Submodule:
	default:
		blob, err := f.tree.TreeEntryFile(e)
		if err != nil {
			return fail(err)
		}
		if open.Reader, err = blob.Reader(); err != nil {
			return fail(err)
		}
		open.info.size = blob.Size
	}
	return open, nil
}

// A cloneFile is an open file or directory.
type cloneFile struct {
	info    cloneInfo
	Reader  io.ReadCloser
	entries []fs.DirEntry
}

func (f *cloneFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *cloneFile) Read(b []byte) (int, error) {
	if f.Reader == nil {
		return 0, &fs.PathError{Op: "read", Path: f.info.Name(), Err: errors.New("is not a file")}
	}
	return f.Reader.Read(b)
}

func (f *cloneFile) Close() error {
	if f.Reader == nil {
		return nil
	}
	return f.Reader.Close()
}

// ReadDir implements fs.ReadDirFile.
func (f *cloneFile) ReadDir(n int) ([]fs.DirEntry, error) {
	out := f.entries
	if n > 0 {
		if len(out) == 0 {
			return nil, io.EOF
		}
		out = out[:min(n, len(out))]
	}
	f.entries = f.entries[len(out):]
	return out, nil
}

// A cloneInfo is the fs.FileInfo of an entry of a tree.
type cloneInfo struct {
	entry object.TreeEntry
	at    *cloneFiles
	dir   *object.Tree
	size  int64
}

func (i cloneInfo) Name() string       { return i.entry.Name }
func (i cloneInfo) ModTime() time.Time { return i.at.time }
func (i cloneInfo) IsDir() bool        { return i.entry.Mode == filemode.Dir }
func (i cloneInfo) Sys() any           { return nil }

func (i cloneInfo) Size() int64 {
	if i.size == 0 && i.dir != nil && i.entry.Mode.IsFile() {
		size, err := i.dir.Size(i.entry.Name)
		if err == nil {
			return size
		}
	}
	return i.size
}

func (i cloneInfo) Mode() fs.FileMode {
	switch i.entry.Mode {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Submodule:
		return fs.ModeIrregular
	case filemode.Executable:
		return 0o755
	}
	return 0o644
}
