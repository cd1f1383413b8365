package gitsource

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// For random trees, diffTrees returns the same changes as git diff.
func TestDiffAgreesWithGit(t *testing.T) {
	g := gitrepo.New(t)
	random := rand.New(rand.NewPCG(3, 4))
	var commits []string
	for range 20 {
		commits = append(commits, fastImport(g, "replace", randomTree(random), "deleteall"))
	}
	r := start(t, config(t, g.Dir))
	r.wantHead(commits[len(commits)-1])
	var pairs strings.Builder
	for _, a := range commits {
		for _, b := range commits {
			fmt.Fprintf(&pairs, "%s^{tree} %s^{tree}\n", a, b)
		}
	}
	trees := strings.Fields(g.Input(strings.ReplaceAll(pairs.String(), " ", "\n"), "cat-file", "--batch-check=%(objectname)"))
	for i := 0; i < len(trees); i += 2 {
		from, to := trees[i], trees[i+1]
		changes, err := diffTrees(reader{repo: r.Repo}.tree, plumbing.NewHash(from), plumbing.NewHash(to))
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range changes {
			got = append(got, c.path)
		}
		if from == to && len(got) > 0 {
			t.Fatalf("%s differs from itself: %q", from, got)
		}
		if i%14 > 0 { // running git is slow
			continue
		}
		want := strings.Fields(g.Git("diff-tree", "-r", "--no-renames", "--name-only", from, to))
		slices.Sort(want)
		if !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%s and %s: we say %q, git says %q", from, to, got, want)
		}
	}
}

// A few directories that contain each other many times are no endless difference.
func TestManyPathsOfFewDirectoriesAreRefused(t *testing.T) {
	read := func(h plumbing.Hash) ([]object.TreeEntry, error) {
		var entries []object.TreeEntry
		for i := range 10 {
			e := object.TreeEntry{Name: fmt.Sprint(strings.Repeat("x", 1000), i), Mode: filemode.Dir, Hash: plumbing.Hash{h[0] + 1}}
			if h[0] == 12 {
				e.Mode = filemode.Regular
			}
			entries = append(entries, e)
		}
		return entries, nil
	}
	if changes, err := diffTrees(read, plumbing.ZeroHash, plumbing.Hash{1}); !errors.Is(err, ErrTooLarge) || len(err.Error()) > 300 {
		t.Errorf("%d changes, %.300v", len(changes), err)
	}
}

// randomTree has few names, so that files become directories and back.
func randomTree(r *rand.Rand) map[string]string {
	names := []string{"a", "a.b", "a-b", "a0", "b"}
	files := map[string]string{}
	for range r.IntN(12) {
		path := names[r.IntN(len(names))]
		for range r.IntN(3) {
			path += "/" + names[r.IntN(len(names))]
		}
		clash := slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(other string) bool {
			return strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/")
		})
		if !clash {
			files[path] = fmt.Sprint(r.IntN(3))
		}
	}
	return files
}

// Changes of a file's mode, of links and of submodules are reported, with the kind of the
// entry.
func TestDiffTellsKindsApart(t *testing.T) {
	g := gitrepo.New(t)
	from := g.Commit("first", map[string]string{"run.sh": "x", "link": "x", "sub": "x"})
	blob := g.Git("rev-parse", "HEAD:run.sh")
	g.Git("update-index", "--chmod=+x", "run.sh")
	g.Git("update-index", "--cacheinfo", "120000,"+blob+",link")
	g.Git("update-index", "--cacheinfo", "160000,"+from+",sub")
	g.Git("commit", "-q", "-m", "second")
	to := g.Head()
	r := start(t, config(t, g.Dir))
	r.wantHead(to)
	got, err := diffCommits(r.Repo, from, to)
	want := []pathChange{
		{path: "link", from: blob, to: blob + " link"},
		{path: "run.sh", from: blob, to: blob + " executable"},
		{path: "sub", from: blob, to: from + " submodule"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("changes are %v (%v), want %v", got, err, want)
	}
}

// Only directories that differ are read.
func TestDiffReadsOnlyWhatDiffers(t *testing.T) {
	g := gitrepo.New(t)
	from := fastImport(g, "all", manifests(500))
	to := change(g, 1, 500)
	r := open(t, config(t, g.Dir).withDefaults())
	if _, err := r.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := 0
	count := func(h plumbing.Hash) ([]object.TreeEntry, error) {
		read++
		return reader{repo: r}.tree(h)
	}
	var roots [2]plumbing.Hash
	for i, hash := range []string{from, to} {
		c, err := r.commit(plumbing.NewHash(hash))
		if err != nil {
			t.Fatal(err)
		}
		roots[i] = c.Tree
	}
	changes, err := diffTrees(count, roots[0], roots[1])
	if err != nil || len(changes) != 1 {
		t.Fatalf("%v, %v", changes, err)
	}
	if want := 2 * 3; read != want { // root, apps and one directory, on both sides
		t.Errorf("%d directories opened, want %d", read, want)
	}
}
