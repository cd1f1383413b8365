package githttp

import (
	"path/filepath"
	"testing"
)

// Serve starts a server that ends with the test. An empty Root is a temporary
// directory.
func Serve(t testing.TB, c Config) *Server {
	t.Helper()
	if c.Root == "" {
		c.Root = t.TempDir()
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A Scratch is a Repo for a test: where a Repo returns an error, it ends the test.
type Scratch struct {
	*Repo
}

// Repo creates a repository below the root of the server; "hub.git" is then served
// at URL("hub.git").
func (s *Server) Repo(t testing.TB, path string) Scratch {
	t.Helper()
	return NewScratch(t, filepath.Join(s.config.Root, filepath.FromSlash(path)))
}

// NewScratch creates a repository in a directory, which need not exist. Nobody
// serves it; its Dir is a remote for clients that take local paths.
func NewScratch(t testing.TB, dir string) Scratch {
	t.Helper()
	repo, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Scratch{repo}
}

// Commit writes files on top of a branch, and keeps what else is there. It returns
// the hash of the commit.
func (s Scratch) Commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	return s.Change(t, branch, Change{Files: files})
}

// Remove commits the removal of files or directories.
func (s Scratch) Remove(t testing.TB, branch string, paths ...string) string {
	t.Helper()
	return s.Change(t, branch, Change{Remove: paths})
}

// Replace commits a tree that has these files only.
func (s Scratch) Replace(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	return s.Change(t, branch, Change{Replace: true, Files: files})
}

// Change commits c on top of a branch and returns the hash.
func (s Scratch) Change(t testing.TB, branch string, c Change) string {
	t.Helper()
	hash, err := s.Repo.Change(branch, c)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// Head returns the hash that a branch points at.
func (s Scratch) Head(t testing.TB, branch string) string {
	t.Helper()
	hash, err := s.Repo.Head(branch)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// ForcePush makes a branch point at a commit, as a forced push does.
func (s Scratch) ForcePush(t testing.TB, branch, hash string) {
	t.Helper()
	if err := s.Repo.ForcePush(branch, hash); err != nil {
		t.Fatal(err)
	}
}

// DeleteBranch removes a branch.
func (s Scratch) DeleteBranch(t testing.TB, branch string) {
	t.Helper()
	if err := s.Repo.DeleteBranch(branch); err != nil {
		t.Fatal(err)
	}
}

// Git runs git in the repository and returns what it prints.
func (s Scratch) Git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.Repo.Git(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
