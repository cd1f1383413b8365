package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hostlimit"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

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
	b := newBases(dir, cfg)
	for i, commit := range commits {
		b.hosts = hostlimit.New(cfg.Limits.FetchBytes) // it is the cache that is tested
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
	b.hosts = hostlimit.New(cfg.Limits.FetchBytes)
	if err := b.Fetch(t.Context(), server.URL, commits[0]); err == nil || !strings.Contains(err.Error(), "all remote bases in use") {
		t.Errorf("although all are in use: %v", err)
	}
	idle := time.Now().Add(-2 * baseIdle)
	for _, base := range b.stores.used {
		base.last = idle
	}
	if files, err := b.Files(server.URL, commits[17]); err != nil {
		t.Fatal(err)
	} else if _, err := fs.ReadFile(files, "a"); err != nil {
		t.Error(err)
	}
	for h, base := range b.stores.used {
		if open := base.store != nil; open != (h.String() == commits[17]) {
			t.Errorf("%s is open: %t", h, open)
		}
	}
	if err := b.Fetch(t.Context(), server.URL, commits[0]); err != nil {
		t.Errorf("although others are no longer in use: %v", err)
	}
	if _, err := b.Files(server.URL, commits[17]); err != nil {
		t.Errorf("one in use: %v", err)
	}
}

// Few stores are open at a time, and their indexes take little memory, however many commits are read at once. All are read whole.
func TestOpenBasesAreBounded(t *testing.T) {
	g := gitrepo.New(t)
	server := serveGit(t, g)
	b := newBases(t.TempDir(), config(t, server.URL))
	var all []fs.FS
	for i := range 5 {
		commit := g.Commit(fmt.Sprint(i), map[string]string{"a": fmt.Sprint(i)})
		if err := b.Fetch(t.Context(), server.URL, commit); err != nil {
			t.Fatal(err)
		}
		files, err := b.Files(server.URL, commit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files)
	}
	for _, most := range []struct {
		open    int
		indexes int64
	}{{2, mib}, {5, 1}, {5, mib}} {
		b.stores.maxOpen, b.stores.maxIndexes = most.open, most.indexes
		if _, err := b.Files(server.URL, g.Head()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 4 * len(all) {
			wg.Go(func() {
				i %= len(all)
				if got, err := fs.ReadFile(all[i], "a"); err != nil || string(got) != fmt.Sprint(i) {
					t.Errorf("%d: %q, %v", i, got, err)
				}
			})
		}
		wg.Wait()
		open := 0
		for _, base := range b.stores.used {
			if base.store != nil {
				open++
			}
		}
		if want := map[int64]int{1: 1, mib: most.open}[most.indexes]; open != want {
			t.Errorf("%+v: %d are open, not %d", most, open, want)
		}
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
	b := newBases(t.TempDir(), cfg)
	var err error
	for _, commit := range commits {
		err = errors.Join(err, b.Fetch(t.Context(), server.URL, commit))
	}
	if err == nil || sent.Load() < hostlimit.HostFetches || sent.Load() > 3*hostlimit.HostFetches {
		t.Errorf("%d requests: %v", sent.Load(), err)
	}
}

// Lists of references count too.
func TestListsOfAHostAreCounted(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": "1"})
	server := serveGit(t, g)
	cfg := config(t, server.URL)
	cfg.Limits.FetchBytes = 2000
	b := newBases(t.TempDir(), cfg)
	var err error
	for range 40 {
		_, err = b.Lock(t.Context(), server.URL, "missing")
	}
	if err == nil || !strings.Contains(err.Error(), "it is asked again in") {
		t.Errorf("after forty lists: %v", err)
	}
}

// newBases returns bases that share their limits with nobody.
func newBases(dir string, cfg Config) *Bases {
	return NewBases(dir, cfg, hostlimit.New(cfg.withDefaults().Limits.FetchBytes))
}

// A commit that cannot be read from the cache was fetched: why it cannot be read is said, and the next fetch replaces it.
func TestDamagedBasesAreFetchedAgain(t *testing.T) {
	g := gitrepo.New(t)
	commit := g.Commit("one", map[string]string{"a": "one"})
	server := serveGit(t, g)
	dir := t.TempDir()
	if err := newBases(dir, config(t, server.URL)).Fetch(t.Context(), server.URL, commit); err != nil {
		t.Fatal(err)
	}
	indexes, err := filepath.Glob(filepath.Join(dir, commit, "objects", "pack", "*.idx"))
	if err != nil || len(indexes) == 0 {
		t.Fatal(indexes, err)
	}
	if err := os.Truncate(indexes[0], 10); err != nil {
		t.Fatal(err)
	}
	b := newBases(dir, config(t, server.URL))
	if _, err := b.Files(server.URL, commit); err == nil || errors.Is(err, errNotFetched) || !strings.Contains(err.Error(), "read it from the cache: pack ") {
		t.Errorf("damaged: %v", err)
	}
	if err := b.Fetch(t.Context(), server.URL, commit); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Files(server.URL, commit); err != nil {
		t.Errorf("fetched again: %v", err)
	}
}
