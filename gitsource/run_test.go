package gitsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/webhook"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// Every kind of remote provides the same commits and files.
func TestACommitArrives(t *testing.T) {
	for name, address := range map[string]func(t *testing.T, g *gitrepo.Repo) string{
		"http":     func(t *testing.T, g *gitrepo.Repo) string { return serveGit(t, g).URL },
		"file":     func(_ *testing.T, g *gitrepo.Repo) string { return "file://" + g.Dir },
		"path":     func(_ *testing.T, g *gitrepo.Repo) string { return g.Dir },
		"path git": func(_ *testing.T, g *gitrepo.Repo) string { return g.Dir + "/.git" },
	} {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			one := map[string]string{"a.yaml": "a: 1\n", "deep/er/b.yaml": "b: 1\n", "big": strings.Repeat("x y z ", 20_000)}
			first := g.Commit("first\n\nwith a body\n\nGitfleet-Allow-Delete: *", one)
			r := start(t, config(t, address(t, g)))
			c := r.wantHead(first)
			if c.Subject != "first" || c.Author != "Ada" || c.Email != "ada@example.com" || len(c.Parents) != 0 ||
				c.Time.IsZero() || !strings.Contains(c.Message, "\n\nGitfleet-Allow-Delete: *") {
				t.Errorf("commit is %+v", c)
			}
			if got := contents(t, r.Repo, first); !maps.Equal(got, one) {
				t.Errorf("files are %v", got)
			}

			second := g.Commit("second", map[string]string{"a.yaml": "a: 2\n"})
			if err := errors.Join(r.poll(), r.again()); err != nil {
				t.Fatal(err)
			}
			if c := r.wantHead(second); !slices.Equal(c.Parents, []string{first}) {
				t.Errorf("parents are %v", c.Parents)
			}
			if got := contents(t, r.Repo, second)["a.yaml"]; got != "a: 2\n" {
				t.Errorf("a.yaml is %q", got)
			}
			if got := contents(t, r.Repo, first)["a.yaml"]; got != "a: 1\n" {
				t.Errorf("a.yaml of the first commit is %q", got)
			}
			if s := r.Status(); s.Head != second || s.Failures != 0 || s.Error != "" || s.LastSuccess.IsZero() || s.NextPoll.IsZero() {
				t.Errorf("status is %+v", s)
			}
		})
	}
}

// A poll without a new commit is one request and calls nothing.
func TestAnUnchangedPollIsOneRequest(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	r := start(t, config(t, s.URL))
	r.next()
	if err := r.poll(); err != nil {
		t.Fatal(err)
	}
	s.requests()
	for range 3 {
		if err := r.again(); err != nil {
			t.Fatal(err)
		}
		if got := s.requests(); !slices.Equal(got, []string{"GET /info/refs"}) {
			t.Errorf("requests are %q", got)
		}
	}
	r.wantNoHead()
}

// A commit that a force push has removed from the remote can still be read completely.
func TestAForcePushedCommitStaysReadable(t *testing.T) {
	for _, kind := range []string{"http", "file"} {
		t.Run(kind, func(t *testing.T) {
			g := gitrepo.New(t)
			base := g.Commit("base", map[string]string{"base": "1"})
			gone := g.Commit("gone", map[string]string{"gone": "1", "base": "2"})
			address := g.Dir
			if kind == "http" {
				address = serveGit(t, g).URL
			}
			r := start(t, config(t, address))
			r.wantHead(gone)
			g.Git("reset", "-q", "--hard", base)
			now := g.Commit("rewritten", map[string]string{"now": "1"})
			g.Git("reflog", "expire", "--expire=now", "--all")
			g.Git("gc", "-q", "--prune=now")
			if err := errors.Join(r.poll(), r.again()); err != nil {
				t.Fatal(err)
			}
			r.wantHead(now)
			if got := contents(t, r.Repo, gone); !maps.Equal(got, map[string]string{"gone": "1", "base": "2"}) {
				t.Errorf("files of the forgotten commit are %v", got)
			}
			if got := contents(t, r.Repo, now); !maps.Equal(got, map[string]string{"now": "1", "base": "1"}) {
				t.Errorf("files of the new commit are %v", got)
			}
		})
	}
}

// If the branch is gone, or the remote is empty, down or refuses the request, the last accepted
// commit stays and the status has the reason.
func TestAFailingRemoteChangesNothing(t *testing.T) {
	tests := map[string]struct {
		fail func(g *gitrepo.Repo, s *gitServer)
		mend func(g *gitrepo.Repo, s *gitServer)
		says string
	}{
		"branch deleted": {
			func(g *gitrepo.Repo, _ *gitServer) {
				g.Git("checkout", "-q", "-b", "other")
				g.Git("branch", "-q", "-D", "main")
			},
			func(g *gitrepo.Repo, _ *gitServer) { g.Git("branch", "-q", "-m", "other", "main") },
			"branch main: not on the remote",
		},
		"server error": {
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(status(http.StatusBadGateway)) },
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(nobody) },
			"server answered 502 Bad Gateway",
		},
		"refused": {
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(status(http.StatusUnauthorized)) },
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(nobody) },
			"check the URL, and that the credentials may read it",
		},
		"not Git at all": {
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(status(http.StatusOK)) },
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(nobody) },
			"list references",
		},
		"connection cut": {
			func(_ *gitrepo.Repo, s *gitServer) {
				s.answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
			},
			func(_ *gitrepo.Repo, s *gitServer) { s.answer(nobody) },
			"EOF",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gitrepo.New(t)
			first := g.Commit("first", map[string]string{"a": "1"})
			s := serveGit(t, g)
			var log bytes.Buffer
			cfg := config(t, s.URL)
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := start(t, cfg)
			r.wantHead(first)
			if err := r.poll(); err != nil {
				t.Fatal(err)
			}
			test.fail(g, s)
			for range 3 {
				wantError(t, r.again(), test.says)
			}
			if got := r.Status(); got.Failures != 3 || got.Head != first || !strings.Contains(got.Error, test.says) {
				t.Errorf("status is %+v", got)
			}
			contents(t, r.Repo, first)
			r.wantNoHead()
			test.mend(g, s)
			second := g.Commit("second", map[string]string{"a": "2"})
			if err := r.again(); err != nil {
				t.Fatal(err)
			}
			r.wantHead(second)
			if got := r.Status(); got.Failures != 0 || got.Error != "" {
				t.Errorf("status is %+v", got)
			}
			if err := r.again(); err != nil { // waits until the log is written
				t.Fatal(err)
			}
			for line, want := range map[string]int{"level=WARN": 1, "can be read again": 1, "new commit": 2} {
				if got := strings.Count(log.String(), line); got != want {
					t.Errorf("%d lines of %q in the log, want %d:\n%s", got, line, want, log.String())
				}
			}
		})
	}
}

func status(code int) func(w http.ResponseWriter, _ *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
}

func nobody(http.ResponseWriter, *http.Request) bool { return false }

// While the remote is down, a restarted daemon continues with the last accepted commit.
func TestTheLastGoodCommitSurvivesARestart(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	cfg := config(t, s.URL)
	t.Run("before", func(t *testing.T) { start(t, cfg).wantHead(first) })
	s.answer(status(http.StatusServiceUnavailable))
	r := start(t, cfg)
	r.wantHead(first)
	wantError(t, r.poll(), "503")
	if got := contents(t, r.Repo, first); got["a"] != "1" {
		t.Errorf("files are %v", got)
	}
	s.answer(nobody)
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantNoHead()
}

// The file system of a commit satisfies the contract of io/fs.
func TestFilesIsAFileSystem(t *testing.T) {
	g := gitrepo.New(t)
	hash := g.Commit("first", map[string]string{"a.yaml": "a", "dir/b.yaml": "b", "dir.x": "c", "dir/sub/c": "d"})
	r := start(t, config(t, g.Dir))
	r.wantHead(hash)
	fsys, err := r.Files(context.Background(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys, "a.yaml", "dir", "dir/b.yaml", "dir.x", "dir/sub/c"); err != nil {
		t.Error(err)
	}
	blob, err := fsys.(hasher).Hash("dir/b.yaml")
	if want := g.Git("rev-parse", "HEAD:dir/b.yaml"); err != nil || blob != want {
		t.Errorf("hash of the file is %s (%v), want %s", blob, err, want)
	}
	tree, err := fsys.(hasher).Hash(".")
	if want := g.Git("rev-parse", "HEAD^{tree}"); err != nil || tree != want {
		t.Errorf("hash of the root is %s (%v), want %s", tree, err, want)
	}
}

// A webhook causes a poll at once, however long the interval is.
func TestAWebhookBringsACommit(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", nil)
	cfg := config(t, serveGit(t, g).URL)
	cfg.Interval = 10 * time.Minute
	heads := make(chan Commit, 10)
	r := open(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx, func(c Commit) { heads <- c }) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	hook := webhook.New(webhook.Config{
		Secret:  func() (string, error) { return "s3cret", nil },
		Wake:    r.RequestPoll,
		Follows: cfg.Ref.Follows,
	})
	if got := (<-heads).Hash; got != first {
		t.Fatalf("head is %s", got)
	}
	second := g.Commit("second", nil)
	pushed := time.Now()
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"ref":"refs/heads/main"}`))
	req.Header.Set("X-Gitlab-Token", "s3cret")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, req)
	if w.Code != http.StatusAccepted {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	if got := (<-heads).Hash; got != second {
		t.Errorf("head is %s, want %s", got, second)
	}
	if took := time.Since(pushed); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A fetch whose response never ends is aborted.
func TestAnEndlessFetchIsGivenUp(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		_, _ = io.WriteString(w, "0008NAK\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	cfg := config(t, s.URL)
	cfg.Limits.FetchTime = 2 * time.Second
	r := start(t, cfg)
	wantError(t, r.poll(), "fetch")
	r.wantNoHead()
	s.answer(nobody)
	if err := r.again(); err != nil {
		t.Fatal(err)
	}
	r.wantHead(first)
}

// Only one process at a time can use a state directory.
func TestAStoreIsNotShared(t *testing.T) {
	g := gitrepo.New(t)
	cfg := config(t, g.Dir)
	one, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(cfg)
	wantError(t, err, "another gitfleet uses this state directory")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, cfg)
}

// A local repository may refer to the objects of another one (alternates).
func TestALocalRepositoryMayBorrow(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	borrower := &gitrepo.Repo{T: t, Dir: t.TempDir()}
	borrower.Git("clone", "-q", "--bare", "--shared", g.Dir, ".")
	r := start(t, config(t, borrower.Dir))
	r.wantHead(first)
	if got := contents(t, r.Repo, first); got["a"] != "1" {
		t.Errorf("files are %v", got)
	}
}

// A repository without commits and a path without a repository have clear errors.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	g := gitrepo.New(t)
	for address, says := range map[string]string{
		g.Dir:              "the remote repository has no branch and no tag",
		serveGit(t, g).URL: "the remote repository has no branch and no tag",
		t.TempDir():        "repository not found",
	} {
		wantError(t, start(t, config(t, address)).poll(), says)
	}
}

// After Run has returned and the Repo is closed, no goroutine is left.
func TestNothingIsLeftRunning(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	s := serveGit(t, g)
	before := runtime.NumGoroutine()
	for range 5 {
		r, err := Open(config(t, s.URL))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = r.Run(ctx, func(c Commit) {
			if c.Hash != first {
				t.Errorf("head is %s", c.Hash)
			}
			cancel()
		})
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s.CloseClientConnections()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before+2 { // the HTTP server's goroutines come and go
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}
