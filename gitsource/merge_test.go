package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Every merge without a conflict has the same tree as that of git, and what git cannot merge is
// a conflict here too.
func TestMergeAgreesWithGit(t *testing.T) {
	g := gitrepo.New(t)
	random := rand.New(rand.NewPCG(5, 6))
	type pair struct{ base, head string }
	var pairs []pair
	g.Git("config", "merge.renames", "false")
	for i := range 30 {
		start := randomTree(random)
		start["common"] = fmt.Sprint(i)
		ancestor := fastImport(g, "replace", start, "deleteall")
		g.Git("branch", "-f", "side", ancestor)
		var p pair
		p.base = fastImport(g, "replace", mutated(random, start), "deleteall")
		g.Git("update-ref", "refs/heads/main", ancestor)
		p.head = fastImport(g, "replace", mutated(random, start), "deleteall")
		g.Git("update-ref", "refs/heads/head-"+fmt.Sprint(i), p.head)
		g.Git("update-ref", "refs/heads/main", p.base)
		pairs = append(pairs, p)
	}
	r := start(t, config(t, g.Dir))
	r.wantHead(pairs[len(pairs)-1].base)
	merged := 0
	for i, p := range pairs {
		if err := r.FetchRef(t.Context(), fmt.Sprint("refs/heads/head-", i), p.head); err != nil {
			t.Fatal(err)
		}
		got, err := r.Merge(t.Context(), p.base, p.head)
		cmd := exec.Command("git", "merge-tree", "--write-tree", "--no-messages", p.base, p.head)
		cmd.Dir = g.Dir
		out, gitErr := cmd.Output()
		conflict := (*ConflictError)(nil)
		switch {
		case errors.As(err, &conflict):
			continue // git also merges the lines of files
		case err != nil:
			t.Fatal(err)
		case gitErr != nil:
			t.Errorf("%v merges here, and git says %v\n%s", p, gitErr, out)
			continue
		}
		merged++
		if hash, err := got.(hasher).Hash("."); err != nil || hash != strings.TrimSpace(string(out)) {
			t.Errorf("%v merges to %s, %v, and in git to %s", p, hash, err, out)
		}
		err = fs.WalkDir(got, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				_, err = fs.ReadFile(got, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if merged < 5 {
		t.Errorf("only %d of %d merged", merged, len(pairs))
	}
}

// mutated returns a tree in which a few paths are changed, added and removed.
func mutated(r *rand.Rand, files map[string]string) map[string]string {
	out := map[string]string{}
	for path, content := range files {
		switch r.IntN(6) {
		case 0:
		case 1:
			out[path] = content + "changed"
		default:
			out[path] = content
		}
	}
	out[fmt.Sprintf("new-%d", r.IntN(100))] = "new"
	return out
}

// If both sides change one file, the error names its path and nothing is merged.
func TestAConflictIsNamed(t *testing.T) {
	g := gitrepo.New(t)
	ancestor := g.Commit("ancestor", map[string]string{"a/x": "1", "b": "1"})
	g.Git("checkout", "-q", "-b", "topic")
	head := g.Commit("topic", map[string]string{"a/x": "2"})
	g.Git("checkout", "-q", "main")
	base := g.Commit("main", map[string]string{"a/x": "3", "b": "2"})
	r := start(t, config(t, g.Dir))
	r.wantHead(base)
	if err := r.FetchRef(t.Context(), "refs/heads/topic", head); err != nil {
		t.Fatal(err)
	}
	_, err := r.Merge(t.Context(), base, head)
	conflict := (*ConflictError)(nil)
	if !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, []string{"a/x"}) {
		t.Errorf("the error is %v", err)
	}
	if files, err := r.Merge(t.Context(), base, ancestor); err != nil {
		t.Error(err)
	} else if got, err := fs.ReadFile(files, "a/x"); err != nil || string(got) != "3" {
		t.Errorf("an ancestor merges to %q, %v", got, err)
	}
}

// A reference that points to another commit is not fetched, and the tracked reference does not
// change.
func TestFetchRefBringsOneCommit(t *testing.T) {
	g := gitrepo.New(t)
	base := g.Commit("base", map[string]string{"a": "1"})
	g.Git("checkout", "-q", "-b", "topic")
	head := g.Commit("topic", map[string]string{"a": "2"})
	g.Git("update-ref", "refs/pull/1/head", head)
	g.Git("checkout", "-q", "main")
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(base)
	if err := r.FetchRef(t.Context(), "refs/pull/1/head", strings.Repeat("1", 40)); !errors.Is(err, ErrRefNotFound) {
		t.Errorf("another commit: %v", err)
	}
	if err := r.FetchRef(t.Context(), "refs/pull/1/head", head); err != nil {
		t.Fatal(err)
	}
	if files, err := r.Files(t.Context(), head); err != nil {
		t.Error(err)
	} else if got, err := fs.ReadFile(files, "a"); err != nil || string(got) != "2" {
		t.Errorf("it has %q, %v", got, err)
	}
	if err := r.again(); err != nil {
		t.Error(err)
	}
	if got := r.Status().Head; got != base {
		t.Errorf("%s is followed, want %s", got, base)
	}
}

// Objects of a pull request never get into the main store. They can be read until the next
// FetchRef and are deleted afterwards.
func TestPullRequestsHaveAStoreOfTheirOwn(t *testing.T) {
	g := gitrepo.New(t)
	base := g.Commit("base", map[string]string{"a": "1"})
	var heads []string
	for i := range 2 {
		g.Git("checkout", "-q", "-B", "topic", "main")
		heads = append(heads, g.Commit("topic", map[string]string{"b": fmt.Sprint(i)}))
		g.Git("update-ref", fmt.Sprintf("refs/pull/%d/head", i), heads[i])
	}
	g.Git("checkout", "-q", "main")
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(base)
	for i, head := range heads {
		if err := r.FetchRef(t.Context(), fmt.Sprintf("refs/pull/%d/head", i), head); err != nil {
			t.Fatal(err)
		}
		if r.stored.Load().Has(plumbing.NewHash(head)) {
			t.Errorf("the store has %s", head)
		}
		files, err := r.Merge(t.Context(), base, head)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(files, "b"); err != nil || string(got) != fmt.Sprint(i) {
			t.Errorf("it merges to %q, %v", got, err)
		}
	}
	if _, err := r.Commit(t.Context(), heads[0]); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("the one before: %v", err)
	}
	if err := r.FetchRef(t.Context(), "refs/heads/main", base); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.branchDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store is left: %v", err)
	}
}

// A pull request that exceeds the limits is not fetched, and no file of it remains.
func TestALargePullRequestIsNotFetched(t *testing.T) {
	g := gitrepo.New(t)
	base := g.Commit("base", map[string]string{"a": "1"})
	g.Git("checkout", "-q", "-b", "topic")
	random := make([]byte, branchBytes+mib)
	rand.NewChaCha8([32]byte{}).Read(random)
	head := g.Commit("topic", map[string]string{"large": string(random)})
	g.Git("checkout", "-q", "main")
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(base)
	if err := r.FetchRef(t.Context(), "refs/heads/topic", head); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(r.branchDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store is left: %v", err)
	}
}
