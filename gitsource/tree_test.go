package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Links and submodules are listed with their kind, and never followed.
func TestLinksAndSubmodulesAreNotFollowed(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"secret": "s", "dir/a": "a"})
	for link, target := range map[string]string{"link": "/etc/passwd", "dir/up": "../secret", "loop": "loop", "todir": "dir"} {
		blob := g.Input(target, "hash-object", "-w", "--stdin")
		g.Git("update-index", "--add", "--cacheinfo", "120000,"+blob+","+link)
	}
	g.Git("update-index", "--add", "--cacheinfo", "160000,"+first+",sub")
	g.Git("commit", "-q", "-m", "second")
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(g.Head())
	fsys, err := r.Files(t.Context(), g.Head())
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			seen = append(seen, fmt.Sprint(path, " ", d.Type()))
		}
		return err
	})
	want := []string{"dir/a ----------", "dir/up L---------", "link L---------", "loop L---------", "secret ----------", "sub ?---------", "todir L---------"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("seen %q (%v), want %q", seen, err, want)
	}
	for _, name := range []string{"link", "dir/up", "loop", "sub"} {
		_, err := fs.ReadFile(fsys, name)
		wantError(t, err, name, "never followed")
		if _, err := fsys.Open(name); err == nil {
			t.Errorf("%s can be opened", name)
		}
	}
	for _, name := range []string{"todir/a", "link/x", "secret/x", "sub/a"} {
		if _, err := fs.ReadFile(fsys, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if target, err := fs.ReadLink(fsys, "link"); err != nil || target != "/etc/passwd" {
		t.Errorf("link says %q, %v", target, err)
	}
	for _, name := range []string{"../secret", "/secret", "dir/../secret", "", "./a"} {
		if _, err := fs.ReadFile(fsys, name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A blindRemote serves every object of a repository without validation, as a hostile server
// would.
type blindRemote struct{ g *gitrepo.Repo }

func (b blindRemote) Session(context.Context) (remote.Session, error) { return blindSession(b), nil }

func (b blindRemote) Close() {}

type blindSession struct{ g *gitrepo.Repo }

func (b blindSession) List(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	refs.References["refs/heads/main"] = plumbing.NewHash(b.g.Git("rev-parse", "refs/heads/main"))
	return refs, nil
}

func (b blindSession) Fetch(context.Context, remote.FetchRequest) (io.ReadCloser, error) {
	all := b.g.Git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
	return io.NopCloser(strings.NewReader(b.g.Output(all+"\n", "pack-objects", "-q", "--stdout"))), nil
}

func (b blindSession) Received() int64 { return 0 }
func (b blindSession) Close() error    { return nil }

// A malformed tree is refused when it is fetched, and the last accepted commit stays.
func TestAHostileTreeIsRefused(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "a"})
	blob := string(unhex(t, g.Git("rev-parse", "HEAD:a")))
	g.Input("commit refs/heads/deep\ncommitter Ada <ada@example.com> 0 +0000\ndata 0\n"+
		"M 100644 inline "+strings.Repeat("d/", objects.MaxDepth+2)+"a\ndata 0\n", "fast-import", "--quiet")
	deep := g.Git("rev-parse", "deep^{tree}")
	hostile := map[string]struct{ tree, says string }{
		"traversal": {g.Tree("100644 ../../evil\x00" + blob), "not allowed"},
		"dot dot":   {g.Tree("40000 ..\x00" + string(unhex(t, deep))), "not allowed"},
		"dot git":   {g.Tree("100644 .git\x00" + blob), "not allowed"},
		"twice":     {g.Tree("100644 a\x00" + blob + "40000 a\x00" + blob), "there twice"},
		"too deep":  {deep, "nest more than 2048 deep"},
		"no tree":   {g.Tree("40000 a\x00" + blob), "another type"},
	}
	r := open(t, config(t, g.Dir).withDefaults())
	r.remote = blindRemote{g}
	if c, err := r.poll(t.Context()); err != nil || c.Hash.String() != first {
		t.Fatal(c, err)
	}
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			g.Git("update-ref", "refs/heads/main", g.Git("commit-tree", "-m", name, "-p", first, test.tree))
			c, err := r.poll(t.Context())
			wantError(t, err, test.says)
			var bad *CommitError
			if c != nil || !errors.As(err, &bad) {
				t.Errorf("%v, and %v is not a CommitError", c, err)
			}
		})
	}
	// An entry that the tree lists as a file, but that is a directory, is an error of that
	// file.
	g.Git("update-ref", "refs/heads/main", g.Git("commit-tree", "-m", "lie", g.Tree("100644 f\x00"+string(unhex(t, g.Git("rev-parse", first+"^{tree}"))))))
	lie, err := r.poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := r.Files(t.Context(), lie.Hash.String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = fs.ReadFile(fsys, "f")
	wantError(t, err, "another type")
	if r.damage.Load() != nil {
		t.Error("it counts as damage")
	}
}

// A commit is not accepted if the remote withholds objects of it, and it does not cause
// repeated clones.
func TestAnIncompletePackIsNotAccepted(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"dir/a": "a", "dir/b": "b"})
	r := open(t, config(t, g.Dir).withDefaults())
	r.remote = blindRemote{g}
	for _, missing := range []string{first + ":dir/b", first + ":dir", first + "^{tree}"} {
		hash := g.Git("rev-parse", missing)
		path := filepath.Join(g.Dir, ".git", "objects", hash[:2], hash[2:])
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		r.clones.last = time.Time{}
		c, err := r.poll(t.Context())
		wantError(t, err, "is incomplete", hash, "missing")
		if c != nil {
			t.Errorf("got %v", c)
		}
		if _, accepted := r.stored.Load().AcceptedRef(r.key()); accepted {
			t.Error("it was accepted")
		}
		if err := os.WriteFile(path, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.clones.last = time.Time{}
	if c, err := r.poll(t.Context()); err != nil || c == nil || c.Hash.String() != first {
		t.Fatal(c, err)
	}
	if got := contents(t, r, first); len(got) != 2 {
		t.Errorf("files are %v", got)
	}
}
