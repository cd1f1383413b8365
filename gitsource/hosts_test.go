package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A host from which fetches take as long as they may is asked at most half of the time, and other hosts are not delayed.
func TestASlowHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(mib)
		var running, most, attempts atomic.Int32
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
		defer cancel()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = h.fetch(ctx, "slow:443", func(*hostShare) error {
						attempts.Add(1)
						most.Store(max(most.Load(), running.Add(1)))
						defer running.Add(-1)
						time.Sleep(10 * time.Minute)
						return errors.New("it takes too long")
					})
					time.Sleep(time.Second)
				}
			})
		}
		time.Sleep(time.Minute)
		start := time.Now()
		if err := h.fetch(ctx, "other:443", func(*hostShare) error { return nil }); err != nil || time.Since(start) > 0 {
			t.Errorf("another host: %v after %v", err, time.Since(start))
		}
		time.Sleep(11 * time.Minute)
		err := h.fetch(ctx, "slow:443", func(*hostShare) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "left alone") || !strings.Contains(err.Error(), "it takes too long") {
			t.Errorf("after it was slow: %v", err)
		}
		all.Wait()
		if most.Load() != basesOfHost || attempts.Load() > 12*6 {
			t.Errorf("%d fetches, %d at a time", attempts.Load(), most.Load())
		}
	})
}

// However many hosts there are, few are asked at the same time.
func TestFewHostsAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(mib)
		var running, most atomic.Int32
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				_ = h.fetch(t.Context(), fmt.Sprint(i), func(*hostShare) error {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					time.Sleep(time.Second)
					return nil
				})
			})
		}
		all.Wait()
		if most.Load() != basesAtOnce {
			t.Errorf("%d at a time", most.Load())
		}
		time.Sleep(2 * hostWindow)
		if h.of("new"); len(h.used) != 1 {
			t.Errorf("%d hosts are remembered", len(h.used))
		}
	})
}

// A host may send a number of bytes within an hour, and take a time, and then has to wait.
func TestTheShareOfAHostEnds(t *testing.T) {
	for name, use := range map[string]func(*hostShare){
		"limits.fetchBytes": func(s *hostShare) { s.received = s.bytes },
		"30m0s":             func(s *hostShare) { time.Sleep(s.time) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHosts(mib)
				fetch := func() error { return h.fetch(t.Context(), "a", func(s *hostShare) error { use(s); return nil }) }
				if err := fetch(); err != nil {
					t.Fatal(err)
				}
				if err := fetch(); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), name) {
					t.Errorf("with nothing left: %v", err)
				}
				time.Sleep(hostWindow)
				if err := fetch(); err != nil {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}

// All commits in the cache have a limit. Those that are not in use make room.
func TestTheCacheOfBasesIsBounded(t *testing.T) {
	g := gitrepo.New(t)
	var commits []string
	for i := range 18 {
		commits = append(commits, g.Commit(fmt.Sprint(i), map[string]string{"a": gitrepo.Noise(70_000 + i)}))
	}
	server := serveGit(t, g)
	cfg := config(t, server.URL)
	cfg.Limits.FetchBytes = 100_000
	dir := t.TempDir()
	b := NewBases(dir, cfg)
	for i, commit := range commits {
		b.hosts = newHosts(cfg.Limits.FetchBytes) // it is the cache that is tested
		if err := b.Fetch(t.Context(), server.URL, commit); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		old := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, commit), old, old); err != nil {
			t.Fatal(err)
		}
		if most := cacheFetches * cfg.Limits.FetchBytes; sizeOf(dir) > most {
			t.Errorf("%d: the cache has %d bytes", i, sizeOf(dir))
		}
	}
	for i, want := range map[int]bool{0: false, 17: true} {
		if _, err := os.Stat(filepath.Join(dir, commits[i])); (err == nil) != want {
			t.Errorf("commit %d is there: %t", i, err == nil)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := b.Files(server.URL, e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	b.hosts = newHosts(cfg.Limits.FetchBytes)
	if err := b.Fetch(t.Context(), server.URL, commits[0]); err == nil || !strings.Contains(err.Error(), "all remote bases in use") {
		t.Errorf("although all are in use: %v", err)
	}
}

// One host cannot send more than its share, in however many commits.
func TestBytesOfAHostAreCounted(t *testing.T) {
	g := gitrepo.New(t)
	var commits []string
	for i := range 12 {
		commits = append(commits, g.Commit(fmt.Sprint(i), map[string]string{"a": gitrepo.Noise(90_000 + i)}))
	}
	server := serveGit(t, g)
	var sent atomic.Int32
	server.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			sent.Add(1)
		}
		return false
	})
	cfg := config(t, server.URL)
	cfg.Limits.FetchBytes = 100_000
	b := NewBases(t.TempDir(), cfg)
	var err error
	for _, commit := range commits {
		err = errors.Join(err, b.Fetch(t.Context(), server.URL, commit))
	}
	if err == nil || sent.Load() < hostFetches || sent.Load() > 3*hostFetches {
		t.Errorf("%d requests: %v", sent.Load(), err)
	}
}
