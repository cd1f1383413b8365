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
)

func rawEntry(mode, name string) string { return mode + " " + name + "\x00" + strings.Repeat("h", 20) }

// A tree that could be read in two ways is refused.
func TestParseTree(t *testing.T) {
	tests := map[string]struct {
		raw   string
		names []string
		says  string
	}{
		"empty":            {"", nil, ""},
		"sorted as Git":    {rawEntry("100644", "a.b") + rawEntry("40000", "a"), []string{"a", "a.b"}, ""},
		"old modes":        {rawEntry("040000", "d") + rawEntry("100664", "f"), []string{"d", "f"}, ""},
		"odd names":        {rawEntry("100644", "\xff\xfe") + rawEntry("100644", `c:\x`), []string{`c:\x`, "\xff\xfe"}, ""},
		"cut short":        {rawEntry("100644", "a")[:20], nil, "ends in the middle"},
		"no name":          {"100644 ", nil, "ends in the middle"},
		"no mode":          {"garbage", nil, "ends in the middle"},
		"unknown mode":     {rawEntry("100000", "a"), nil, "unknown mode"},
		"no mode at all":   {rawEntry("", "a"), nil, "unknown mode"},
		"empty name":       {rawEntry("100644", ""), nil, "not allowed"},
		"this directory":   {rawEntry("40000", "."), nil, "not allowed"},
		"parent directory": {rawEntry("40000", ".."), nil, "not allowed"},
		"Git's own":        {rawEntry("40000", ".git"), nil, "not allowed"},
		"slash":            {rawEntry("100644", "../../etc/passwd"), nil, "not allowed"},
		"twice":            {rawEntry("100644", "a") + rawEntry("40000", "a"), nil, "there twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entries, err := parseTree([]byte(test.raw))
			if test.says != "" {
				wantError(t, err, test.says)
				return
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.name)
			}
			if err != nil || !slices.Equal(names, test.names) {
				t.Errorf("names %q, %v", names, err)
			}
		})
	}
}

// No tree object panics, and what is read is sorted and unambiguous.
func FuzzParseTree(f *testing.F) {
	f.Add([]byte(rawEntry("100644", "a") + rawEntry("40000", "b")))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := parseTree(raw)
		if err != nil {
			return
		}
		for i, e := range entries {
			if e.name == "" || strings.Contains(e.name, "/") || i > 0 && entries[i-1].name >= e.name {
				t.Errorf("entries are %v", entries)
			}
		}
	})
}

// No commit object panics, and what is read keeps all bytes of the message.
func FuzzParseCommit(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte("tree " + h + "\nparent " + h + "\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 -0130\n\nsubject\n\nbody\n"))
	f.Add([]byte("tree " + h + "\nauthor \ncommitter <>>< 9999999999999999999999\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseCommit(plumbing.ZeroHash, raw)
		if err != nil {
			return
		}
		if !strings.HasSuffix(string(raw), c.message) {
			t.Errorf("message %q is not the end", c.message)
		}
		c.public()
	})
}

// Links and submodules are seen, named, and never followed.
func TestLinksAndSubmodulesAreNotFollowed(t *testing.T) {
	g := newGitRepo(t)
	first := g.commit("first", map[string]string{"secret": "s", "dir/a": "a"})
	for link, target := range map[string]string{"link": "/etc/passwd", "dir/up": "../secret", "loop": "loop", "todir": "dir"} {
		blob := g.input(target, "hash-object", "-w", "--stdin")
		g.git("update-index", "--add", "--cacheinfo", "120000,"+blob+","+link)
	}
	g.git("update-index", "--add", "--cacheinfo", "160000,"+first+",sub")
	g.git("commit", "-q", "-m", "second")
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(g.head())
	fsys, err := r.Files(t.Context(), g.head())
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

// A blindRemote hands out every object of a repository without looking, as a
// hostile server would.
type blindRemote struct{ g *gitRepo }

func (b blindRemote) session(context.Context) (session, error) { return blindSession(b), nil }

func (b blindRemote) close() {}

type blindSession struct{ g *gitRepo }

func (b blindSession) list(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	refs.References["refs/heads/main"] = plumbing.NewHash(b.g.git("rev-parse", "refs/heads/main"))
	return refs, nil
}

func (b blindSession) fetch(context.Context, fetch) (io.ReadCloser, error) {
	all := b.g.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
	return io.NopCloser(strings.NewReader(b.g.output(all+"\n", "pack-objects", "-q", "--stdout"))), nil
}

func (b blindSession) received() int64 { return 0 }
func (b blindSession) Close() error    { return nil }

// A tree made by hand to confuse is refused when it arrives, not when it is
// read, and what was there before stays in force.
func TestAHostileTreeIsRefused(t *testing.T) {
	g := newGitRepo(t)
	first := g.commit("first", map[string]string{"a": "a"})
	blob := string(unhex(t, g.git("rev-parse", "HEAD:a")))
	g.input("commit refs/heads/deep\ncommitter Ada <ada@example.com> 0 +0000\ndata 0\n"+
		"M 100644 inline "+strings.Repeat("d/", maxDepth+2)+"a\ndata 0\n", "fast-import", "--quiet")
	deep := g.git("rev-parse", "deep^{tree}")
	hostile := map[string]struct{ tree, says string }{
		"traversal": {g.tree("100644 ../../evil\x00" + blob), "not allowed"},
		"dot dot":   {g.tree("40000 ..\x00" + string(unhex(t, deep))), "not allowed"},
		"dot git":   {g.tree("100644 .git\x00" + blob), "not allowed"},
		"twice":     {g.tree("100644 a\x00" + blob + "40000 a\x00" + blob), "there twice"},
		"too deep":  {deep, "nest more than 2048 deep"},
		"no tree":   {g.tree("40000 a\x00" + blob), "another type"},
	}
	r := open(t, config(t, g.dir).withDefaults())
	r.remote = blindRemote{g}
	if c, err := r.poll(t.Context()); err != nil || c.hash.String() != first {
		t.Fatal(c, err)
	}
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			g.git("update-ref", "refs/heads/main", g.git("commit-tree", "-m", name, "-p", first, test.tree))
			c, err := r.poll(t.Context())
			wantError(t, err, test.says)
			var bad *CommitError
			if c != nil || !errors.As(err, &bad) {
				t.Errorf("%v, and %v is not a CommitError", c, err)
			}
		})
	}
	// What a tree calls a file and is a directory is an error of that file.
	g.git("update-ref", "refs/heads/main", g.git("commit-tree", "-m", "lie", g.tree("100644 f\x00"+string(unhex(t, g.git("rev-parse", first+"^{tree}"))))))
	lie, err := r.poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := r.Files(t.Context(), lie.hash.String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = fs.ReadFile(fsys, "f")
	wantError(t, err, "another type")
	if r.damage.Load() != nil {
		t.Error("it counts as damage")
	}
}

// A remote that keeps objects back gives no commit, and is not cloned for it
// again and again.
func TestAnIncompletePackIsNotAccepted(t *testing.T) {
	g := newGitRepo(t)
	first := g.commit("first", map[string]string{"dir/a": "a", "dir/b": "b"})
	r := open(t, config(t, g.dir).withDefaults())
	r.remote = blindRemote{g}
	for _, missing := range []string{first + ":dir/b", first + ":dir", first + "^{tree}"} {
		hash := g.git("rev-parse", missing)
		path := filepath.Join(g.dir, ".git", "objects", hash[:2], hash[2:])
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
		if _, accepted := r.stored.Load().acceptedRef(r.key()); accepted {
			t.Error("it was accepted")
		}
		if err := os.WriteFile(path, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.clones.last = time.Time{}
	if c, err := r.poll(t.Context()); err != nil || c == nil || c.hash.String() != first {
		t.Fatal(c, err)
	}
	if got := contents(t, r, first); len(got) != 2 {
		t.Errorf("files are %v", got)
	}
}
