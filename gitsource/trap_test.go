package gitsource

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5"
	gitconfig "github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// TestTheShallowTrap shows why shallow clones and the library's tree walkers are not used.
// After a shallow clone and a force-push to an ancestor of its root, the library's fetch
// returns no error although trees are missing, and its diff then reports their files as
// deleted, without an error. A reconciler that prunes would delete the objects. Repo reports
// the missing trees as an error instead.
//
// If the library fixes this and the test fails, the test may be removed.
func TestTheShallowTrap(t *testing.T) {
	const dirs, each = 20, 10
	g := gitrepo.New(t)
	files := map[string]string{}
	for d := range dirs {
		for f := range each {
			files[fmt.Sprintf("d%02d/f%d.yaml", d, f)] = fmt.Sprintf("d: %d\nf: %d\n", d, f)
		}
	}
	base := g.Commit("base", files)
	// Every directory changes, so that no later commit contains the trees of base.
	for d := range dirs {
		files[fmt.Sprintf("d%02d/f0.yaml", d)] = "changed: 1\n"
	}
	g.Commit("second", files)
	third := g.Commit("third", map[string]string{"d00/f0.yaml": "changed: 2\n"})
	s := serveGit(t, g)

	dir := t.TempDir()
	clone, err := git.PlainClone(dir, true, &git.CloneOptions{URL: s.URL, Depth: 1, SingleBranch: true, ReferenceName: "refs/heads/main"})
	if err != nil {
		t.Fatal(err)
	}
	spec := []gitconfig.RefSpec{"+refs/heads/main:refs/heads/main"}
	fourth := g.Commit("fourth", map[string]string{"d00/f1.yaml": "changed: 3\n"})
	if err := clone.Fetch(&git.FetchOptions{RefSpecs: spec}); err != nil {
		t.Fatal(err)
	}
	g.Git("reset", "-q", "--hard", base)
	rewritten := g.Commit("rewritten", map[string]string{"d01/f1.yaml": "changed: 4\n"})
	if err := clone.Fetch(&git.FetchOptions{RefSpecs: spec, Force: true}); err != nil {
		t.Fatalf("fetch after the force-push: %v; the trap is gone", err)
	}
	from, to := tree(t, clone, fourth), tree(t, clone, rewritten)
	wrong, err := object.DiffTree(from, to)
	if err != nil {
		t.Fatalf("the library says %v; the trap is gone", err)
	}
	deleted := 0
	for _, c := range wrong {
		if c.To.Name == "" {
			deleted++
		}
	}
	if deleted == 0 {
		t.Fatal("the library finds nothing deleted; the trap is gone")
	}
	t.Logf("the library calls %d of %d files deleted, without an error; none is", deleted, dirs*each)

	st, err := objects.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := objects.Complete(t.Context(), st, to.Hash, noneKnown); !objects.IsDamage(err) {
		t.Errorf("our walker does not miss anything: %v", err)
	}
	if changes, err := diffTrees(st.Tree, from.Hash, to.Hash); !objects.IsDamage(err) || changes != nil {
		t.Errorf("our difference is %d changes and %v", len(changes), err)
	}

	// With the whole history, the same force-push has the correct diff.
	g.Git("update-ref", "refs/heads/main", third)
	g.Git("symbolic-ref", "HEAD", "refs/heads/main")
	r := start(t, config(t, s.URL))
	r.wantHead(third)
	g.Git("update-ref", "refs/heads/main", rewritten)
	if err := errors.Join(r.poll(), r.again()); err != nil {
		t.Fatal(err)
	}
	r.wantHead(rewritten)
	changes, err := diffCommits(r.Repo, third, rewritten)
	if want := dirs + 1; err != nil || len(changes) != want { // f0 of each directory is reverted, and one more file changes
		t.Errorf("%d changes (%v), want %d", len(changes), err, want)
	}
	if got := len(contents(t, r.Repo, rewritten)); got != dirs*each {
		t.Errorf("%d files, want %d", got, dirs*each)
	}
}

func tree(t *testing.T, r *git.Repository, hash string) *object.Tree {
	t.Helper()
	c, err := r.CommitObject(plumbing.NewHash(hash))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.Tree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
