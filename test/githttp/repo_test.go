package githttp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gitfleet/gitfleet/test/githttp"
)

func TestSameCommitsHaveSameHashes(t *testing.T) {
	t.Setenv("GIT_AUTHOR_NAME", "Somebody Else")
	t.Setenv("GIT_DIR", "/nowhere")
	build := func() string {
		repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
		repo.Commit(t, "main", map[string]string{"a": "1", "b": "2"})
		return repo.Commit(t, "main", map[string]string{"a": "3"})
	}
	first, second := build(), build()
	if first != second {
		t.Errorf("%s and %s", first, second)
	}
	const want = "38d09a9f5d0a29f5bcc7fdce47c7a8f279651f4c"
	if first != want {
		t.Errorf("%s, but elsewhere %s", first, want)
	}
}

func TestCommitsAddRemoveAndReplace(t *testing.T) {
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	files := func() string { return repo.Git(t, "ls-tree", "-r", "--name-only", "-z", "main") }

	first := repo.Commit(t, "main", map[string]string{"a": "1", "dir/b": "2", "dir/c": "3"})
	if got := files(); got != "a\x00dir/b\x00dir/c\x00" {
		t.Errorf("after a commit: %q", got)
	}
	repo.Commit(t, "main", map[string]string{`it's a "name"`: "4"})
	if got := files(); got != "a\x00dir/b\x00dir/c\x00it's a \"name\"\x00" {
		t.Errorf("after another: %q", got)
	}
	repo.Remove(t, "main", "dir")
	if got := files(); got != "a\x00it's a \"name\"\x00" {
		t.Errorf("after a removal: %q", got)
	}
	last := repo.Replace(t, "main", map[string]string{"z": ""})
	if got := files(); got != "z\x00" {
		t.Errorf("after a replacement: %q", got)
	}
	if got := repo.Git(t, "rev-list", "--count", first+".."+last); got != "3" {
		t.Errorf("%s commits after the first", got)
	}
	repo.Git(t, "fsck", "--strict")
}

func TestForcePushMovesABranchBack(t *testing.T) {
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	first := repo.Commit(t, "main", map[string]string{"a": "1"})
	second := repo.Commit(t, "main", map[string]string{"a": "2"})
	repo.ForcePush(t, "main", first)
	third := repo.Commit(t, "main", map[string]string{"a": "3"})
	if base := repo.Git(t, "merge-base", second, third); base != first {
		t.Errorf("histories part at %s, not at %s", base, first)
	}
}

func TestDeletedBranchIsGone(t *testing.T) {
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	repo.Commit(t, "main", map[string]string{"a": "1"})
	repo.Commit(t, "other", map[string]string{"a": "1"})
	repo.DeleteBranch(t, "other")
	if got := repo.Git(t, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("refs are %s", got)
	}
	if _, err := repo.Repo.Head("other"); err == nil {
		t.Error("a deleted branch has a head")
	}
}

func TestModesAreKept(t *testing.T) {
	repo := githttp.NewScratch(t, filepath.Join(t.TempDir(), "hub.git"))
	repo.Change(t, "main", githttp.Change{
		Message: "three kinds",
		Files:   map[string]string{"link": "plain", "plain": "1", "run": "2"},
		Modes:   map[string]fs.FileMode{"link": fs.ModeSymlink, "run": 0o755},
	})
	if got := repo.Git(t, "ls-tree", "--format=%(objectmode) %(path)", "main"); got != "120000 link\n100644 plain\n100755 run" {
		t.Errorf("tree is\n%s", got)
	}
	if got := repo.Git(t, "log", "--format=%s, %an, %ai", "main"); got != "three kinds, Ada Example, 2026-01-05 09:00:00 +0000" {
		t.Errorf("log is %s", got)
	}
}

func TestTreeReadsADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := githttp.Tree(dir)
	if err != nil || len(files) != 1 || files["a/b"] != "1" {
		t.Errorf("read %q: %v", files, err)
	}
}
