package remote

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

func local(t *testing.T, path string) (Session, error) {
	t.Helper()
	where, err := ParseLocation(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{}, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s, err := r.Session(t.Context())
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

// A local repository lists its references, from its working tree, its Git directory and a bare
// clone.
func TestALocalRepositoryIsListed(t *testing.T) {
	g := gitrepo.New(t)
	head := g.Commit("first", map[string]string{"a": "1"})
	g.Git("tag", "v1")
	bare := filepath.Join(t.TempDir(), "bare")
	g.Git("clone", "-q", "--bare", ".", bare)
	for _, path := range []string{g.Dir, "file://" + g.Dir, filepath.Join(g.Dir, ".git"), bare} {
		s, err := local(t, path)
		if err != nil {
			t.Fatal(err)
		}
		refs, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if refs.Head == nil || refs.Head.String() != head || refs.References["refs/heads/main"].String() != head || refs.References["refs/tags/v1"].String() != head {
			t.Errorf("%s has %v, head %v", path, refs.References, refs.Head)
		}
	}
	if _, err := local(t, t.TempDir()); !errors.Is(err, transport.ErrRepositoryNotFound) {
		t.Errorf("no repository: %v", err)
	}
	s, err := local(t, gitrepo.New(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context()); !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		t.Errorf("an empty repository: %v", err)
	}
}

// A fetch brings every object that the wanted references need and the store does not have, and
// nothing else.
func TestALocalFetchBringsWhatIsMissing(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"dir/a": "a", "b": "b"})
	g.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	g.Git("commit", "-q", "-m", "second")
	g.Git("tag", "-a", "-m", "v1", "v1")
	second := g.Head()
	g.Git("checkout", "-q", "-b", "side", first)
	g.Commit("side", map[string]string{"c": "c"})
	st, err := objects.Create(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	fetch := func(want string) {
		t.Helper()
		s, err := local(t, g.Dir)
		if err != nil {
			t.Fatal(err)
		}
		wants := []plumbing.Hash{plumbing.NewHash(want)}
		pack, err := s.Fetch(t.Context(), FetchRequest{Wants: wants, Has: st.Has})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(st.AddPack(t.Context(), pack, objects.Limits{Objects: 100, ObjectBytes: 1 << 20, UnpackedBytes: 1 << 20}), pack.Close()); err != nil {
			t.Fatal(err)
		}
		if wants[0].String() != want {
			t.Error("the request was changed")
		}
	}
	stored := func() []string {
		var all []string
		for _, h := range st.WithPrefix("") {
			all = append(all, h.String())
		}
		slices.Sort(all)
		return all
	}
	reachable := func(revision string) []string {
		out := strings.Fields(g.Git("rev-list", "--objects", "--no-object-names", revision))
		slices.Sort(out)
		return out
	}
	fetch(first)
	if got, want := stored(), reachable(first); !slices.Equal(got, want) {
		t.Errorf("the store has\n%q\nwant\n%q", got, want)
	}
	fetch(g.Git("rev-parse", "v1"))
	if got, want := stored(), reachable("v1"); !slices.Equal(got, want) {
		t.Errorf("the store has\n%q\nwant\n%q", got, want)
	}
	if !st.Has(plumbing.NewHash(second)) {
		t.Error("the commit of the tag is missing")
	}
}

// A fetch ends when its context is done, and an object that is missing in the repository is named.
func TestALocalFetchFails(t *testing.T) {
	g := gitrepo.New(t)
	head := plumbing.NewHash(g.Commit("first", map[string]string{"a": "1"}))
	s, err := local(t, g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	none := func(plumbing.Hash) bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fetch(ctx, FetchRequest{Wants: []plumbing.Hash{head}, Has: none}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	missing := plumbing.NewHash(strings.Repeat("1", 40))
	if _, err := s.Fetch(t.Context(), FetchRequest{Wants: []plumbing.Hash{missing}, Has: none}); err == nil || !strings.Contains(err.Error(), missing.String()) {
		t.Errorf("a missing object: %v", err)
	}
}
