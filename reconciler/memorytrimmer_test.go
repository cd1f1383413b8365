package reconciler

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
)

// A slowSource takes a while to read the files of a commit, and fails.
type slowSource struct {
	Source
	takes time.Duration
}

func (s slowSource) Files(context.Context, string) (fs.FS, error) {
	time.Sleep(s.takes)
	return nil, errors.New("no such commit")
}

// Memory is returned once after the last of several long loads, and not after short ones: a
// commit of one file leaves hardly any garbage.
func TestMemoryIsFreedAfterLongLoads(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads []time.Duration
		want  int64
	}{
		{"no load", nil, 0},
		{"a short load", []time.Duration{longLoad / 2}, 0},
		{"a long load", []time.Duration{2 * longLoad}, 1},
		{"long loads in a row", []time.Duration{2 * longLoad, 2 * longLoad}, 1},
		{"a long load and a short one", []time.Duration{2 * longLoad, longLoad / 2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var freed atomic.Int64
				r := New(Config{Log: slog.New(slog.DiscardHandler)})
				r.guard = NewCrashGuard("", nil)
				r.trimmer = newMemoryTrimmer(func() { freed.Add(1) })
				for _, takes := range c.loads {
					r.cfg.Source = slowSource{takes: takes}
					r.load(t.Context(), nil, gitsource.Commit{Hash: "c1"})
				}
				time.Sleep(trimDelay / 2)
				synctest.Wait()
				if freed.Load() > 0 {
					t.Error("memory is freed while the loop plans the commit")
				}
				time.Sleep(trimDelay)
				synctest.Wait()
				if freed.Load() != c.want {
					t.Errorf("memory is freed %d times, want %d", freed.Load(), c.want)
				}
			})
		})
	}
}
