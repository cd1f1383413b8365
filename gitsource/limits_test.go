package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A fetch exactly at each limit succeeds. One just above a limit is refused, and nothing of it
// is kept.
func TestEachLimitHoldsExactly(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("first", map[string]string{"a": gitrepo.Noise(50_000), "b": "b"})
	second := g.Commit("second", map[string]string{"a": gitrepo.Noise(50_000) + "more"})
	g.Git("-c", "pack.window=10", "repack", "-q", "-a", "-d", "-f")
	s := serveGit(t, g)
	over := map[string]string{"http": s.URL, "file": g.Dir}

	// the sizes are measured first
	var received int64
	cfg := config(t, s.URL)
	cfg.Hooks.Fetched = func(_ time.Duration, n int64, _ error) { received = n }
	measured := start(t, cfg)
	measured.wantHead(second)
	asked, err := measured.remote.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asked.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	listed := asked.Received()
	const objects = 2 + 2 + 3 // commits, trees, blobs
	const rebuilt = 50_004    // the larger version of a

	tests := map[string]struct {
		kinds []string
		set   func(l *Limits, off int)
		says  string
	}{
		// the size of the packets in a server's response varies by a few bytes
		"fetch bytes":  {[]string{"http"}, func(l *Limits, off int) { l.FetchBytes = received + 100 + 200*int64(off) }, "(limits.fetchBytes)"},
		"list bytes":   {[]string{"http"}, func(l *Limits, off int) { l.ListBytes = listed + int64(off) }, "in a list of references"},
		"objects":      {[]string{"http", "file"}, func(l *Limits, off int) { l.Objects = objects + off }, "7 objects, at most 6 (limits.fetchObjects)"},
		"object bytes": {[]string{"http"}, func(l *Limits, off int) { l.ObjectBytes = rebuilt + int64(off) }, "(limits.objectBytes)"},
	}
	for name, test := range tests {
		for _, kind := range test.kinds {
			for off, fits := range map[int]bool{0: true, -1: false} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, off), func(t *testing.T) {
					cfg := config(t, over[kind])
					test.set(&cfg.Limits, off)
					r := start(t, cfg)
					err := r.poll()
					if fits {
						if err != nil {
							t.Fatal(err)
						}
						r.wantHead(second)
						return
					}
					wantError(t, err, "too large", test.says)
					if !errors.Is(err, ErrTooLarge) {
						t.Errorf("%v is not ErrTooLarge", err)
					}
					r.wantNoHead()
					if names, err := fs.Glob(dirFS(r.stored.Load().Dir), "objects/pack/*"); err != nil || len(names) > 0 {
						t.Errorf("left behind: %v, %v", names, err)
					}
				})
			}
		}
	}
}

// A file just above the size limit is an error of that file only.
func TestTheFileLimitHoldsExactly(t *testing.T) {
	g := gitrepo.New(t)
	hash := g.Commit("first", map[string]string{"fits": strings.Repeat("x", 1000), "large": strings.Repeat("x", 1001)})
	cfg := config(t, g.Dir)
	cfg.Limits.FileBytes = 1000
	r := start(t, cfg)
	r.wantHead(hash)
	fsys, err := r.Files(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(fsys, "fits"); err != nil || len(content) != 1000 {
		t.Errorf("fits: %d bytes, %v", len(content), err)
	}
	_, err = fs.ReadFile(fsys, "large")
	wantError(t, err, "large", "1001 bytes, at most 1000")
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v is not ErrTooLarge", err)
	}
	if info, err := fs.Stat(fsys, "large"); err != nil || info.Size() != 1001 {
		t.Errorf("the size is still told: %v, %v", info, err)
	}
	if err := errors.Join(r.poll(), r.again()); err != nil {
		t.Fatal(err)
	}
	r.wantNoHead() // a file that is too large is not damage
}
