package gitsource

import (
	"context"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A gitServer serves a repository over smart HTTP, counts requests, and can be
// made to fail.
type gitServer struct {
	*httptest.Server
	log     chan string
	backend http.Handler
	before  atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

func serveGit(t testing.TB, g *gitrepo.Repo) *gitServer {
	t.Helper()
	s := gitHandler(t, g)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func gitHandler(t testing.TB, g *gitrepo.Repo) *gitServer {
	t.Helper()
	return &gitServer{
		log:     make(chan string, 10_000),
		backend: githttp.Serve(t, githttp.Config{Root: g.Dir}),
	}
}

// ServeHTTP implements http.Handler.
func (s *gitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.log <- r.Method + " " + r.URL.Path
	if before := s.before.Load(); before != nil && (*before)(w, r) {
		return
	}
	s.backend.ServeHTTP(w, r)
}

// answer sets a function that may respond instead of Git; it returns true if it did.
func (s *gitServer) answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.before.Store(&f)
}

// requests returns the requests since the last call.
func (s *gitServer) requests() []string {
	var out []string
	for {
		select {
		case r := <-s.log:
			out = append(out, r)
		default:
			return out
		}
	}
}

// config returns a configuration that tracks main of a remote, with a state directory of its
// own.
func config(t testing.TB, url string) Config {
	t.Helper()
	return Config{
		URL: url, Ref: Ref{Branch: "main"}, Dir: t.TempDir(), Interval: time.Hour,
		AllowHTTP: true, AllowFile: true,
	}
}

func open(t testing.TB, cfg Config) *Repo {
	t.Helper()
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A runner is a running Repo whose polls the test controls.
type runner struct {
	*Repo
	t     testing.TB
	heads chan Commit
	polls chan error
}

// start runs a Repo until the test ends. It polls once at the start, and afterwards only when
// it is nudged.
func start(t testing.TB, cfg Config) *runner {
	t.Helper()
	r := &runner{t: t, heads: make(chan Commit, 100), polls: make(chan error, 100)}
	cfg.Hooks.Polled = func(_ time.Duration, err error) { r.polls <- err }
	r.Repo = open(t, cfg)
	r.backoff = backoff{interval: time.Hour, first: time.Hour, most: time.Hour} // no minimum delay after a poll
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx, func(c Commit) { r.heads <- c }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
	return r
}

// poll returns the result of the next poll.
func (r *runner) poll() error {
	r.t.Helper()
	select {
	case err := <-r.polls:
		return err
	case <-time.After(30 * time.Second):
		r.t.Fatal("no poll within 30 s")
		return nil
	}
}

// again requests a poll of the Repo and returns the result of that poll.
func (r *runner) again() error {
	r.t.Helper()
	r.RequestPoll()
	return r.poll()
}

// next returns the next head.
func (r *runner) next() Commit {
	r.t.Helper()
	select {
	case c := <-r.heads:
		return c
	case <-time.After(30 * time.Second):
		r.t.Fatal("no new head within 30 s: ", r.Status().Error)
		return Commit{}
	}
}

// wantHead fails unless the next head is the one given.
func (r *runner) wantHead(hash string) Commit {
	r.t.Helper()
	c := r.next()
	if c.Hash != hash {
		r.t.Fatalf("head is %s, want %s", c.Hash, hash)
	}
	return c
}

// wantNoHead fails if head was called. The test calls it after a poll has ended and the Repo
// waits for the next one, so that no call is still to come.
func (r *runner) wantNoHead() {
	r.t.Helper()
	select {
	case c := <-r.heads:
		r.t.Fatalf("head was called with %s %q", c.Hash, c.Subject)
	default:
	}
}

// A hasher is the file system of a commit, which knows the hashes of its files and directories.
type hasher interface {
	Hash(name string) (string, error)
}

// contents returns every regular file of a commit.
func contents(t testing.TB, r *Repo, commit string) map[string]string {
	t.Helper()
	fsys, err := r.Files(context.Background(), commit)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		out[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// diffCommits returns the differences between two commits.
func diffCommits(r *Repo, from, to string) ([]pathChange, error) {
	var trees [2]plumbing.Hash
	for i, hash := range []string{from, to} {
		c, err := r.commit(plumbing.NewHash(hash))
		if err != nil {
			return nil, err
		}
		trees[i] = c.Tree
	}
	return diffTrees(reader{repo: r}.tree, trees[0], trees[1])
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func unhex(t testing.TB, hash string) []byte {
	t.Helper()
	b, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
