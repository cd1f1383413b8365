package gitsource

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server that never finishes its answer shows in the steps, and does not keep Run from ending.
func TestASlowRemoteIsShownAndLeft(t *testing.T) {
	asked := make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.WriteString(w, "0")
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-req.Context().Done()
	}))
	defer srv.Close()
	cfg := config(t, srv.URL+"/x.git")
	cfg.AllowHTTP = true
	r := open(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx, func(Commit) {}) }()
	<-asked
	if steps := r.Steps(); len(steps) != 1 || steps[0].What != "listing references" || steps[0].Since.IsZero() {
		t.Errorf("it does %v", steps)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil || len(r.Steps()) != 0 {
			t.Errorf("it ended with %v, and does %v", err, r.Steps())
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// A fetch that must not begin does not, and fetches that take too much or too long name their limit.
func TestFetchesAreBounded(t *testing.T) {
	s := newSignedRepo(t)
	s.sign("", file{"a": strings.Repeat("x", 10_000)})
	for name, test := range map[string]struct {
		set  func(*Config)
		says string
	}{
		"refused": {func(c *Config) {
			c.Hooks.Fetching = func(string) (func(), error) { return nil, errors.New("not again") }
		}, "fetch: not again"},
		"too much": {func(c *Config) { c.Limits.UnpackedBytes = 5000 }, "limits.unpackedBytes"},
		"too slow": {func(c *Config) { c.Limits.FetchTime = time.Nanosecond }, "limits.fetchTime"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, s.Dir)
			test.set(&cfg)
			r := start(t, cfg)
			wantError(t, r.poll(), test.says)
			r.wantNoHead()
		})
	}
	t.Run("checked", func(t *testing.T) {
		cfg := config(t, s.Dir)
		fetches, ended := 0, 0
		cfg.Hooks.Fetching = func(string) (func(), error) {
			if fetches++; fetches == 2 {
				return nil, errors.New("not checked again")
			}
			return func() { ended++ }, nil
		}
		r := start(t, cfg)
		wantError(t, r.poll(), "not checked again")
		if r.wantNoHead(); ended != 1 {
			t.Errorf("%d of %d have ended", ended, fetches)
		}
	})
	t.Run("deltas of a pull request", func(t *testing.T) {
		if l := (Config{}).withDefaults().Limits.ofBranch(); l.ObjectBytes != 32*mib {
			t.Errorf("an object may have %d bytes", l.ObjectBytes)
		}
		if l := (Limits{ObjectBytes: 5}).ofBranch(); l.ObjectBytes != 5 {
			t.Errorf("an object may have %d bytes", l.ObjectBytes)
		}
	})
	t.Run("pull request refused", func(t *testing.T) {
		r := start(t, config(t, s.Dir))
		r.wantHead(s.Head())
		r.cfg.Hooks.Fetching = func(h string) (func(), error) { return nil, errors.New("not again: " + h) }
		wantError(t, r.FetchRef(t.Context(), "refs/heads/main", s.Head()), "fetch refs/heads/main: not again: "+s.Head())
	})
	t.Run("pull request", func(t *testing.T) {
		cfg := config(t, s.Dir)
		r := start(t, cfg)
		r.wantHead(s.Head())
		s.Git("checkout", "-q", "-b", "side")
		side := s.sign("", file{"b": strings.Repeat("y", 10_000)})
		s.Git("checkout", "-q", "main")
		r.cfg.Limits.UnpackedBytes = 5000
		wantError(t, r.FetchRef(t.Context(), "refs/heads/side", side), "limits.unpackedBytes")
	})
}

// Reading a commit ends with its context, also for packages that know none.
func TestFilesEndWithTheirContext(t *testing.T) {
	s := newSignedRepo(t)
	head := s.sign("", file{"a": "1"})
	r := start(t, config(t, s.Dir))
	r.wantHead(head)
	ctx, cancel := context.WithCancel(t.Context())
	files, err := r.Files(ctx, head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(files, "a"); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := fs.ReadFile(files, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("it can still be read: %v", err)
	}
}
