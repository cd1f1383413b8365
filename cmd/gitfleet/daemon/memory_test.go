package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The limit of the Go runtime is nine tenths of that of the container, unless GOMEMLIMIT is set. If
// the limit of the container is not known, the runtime keeps its own, and the log says why.
func TestMemoryFollowsTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	failing := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	for name, test := range map[string]struct {
		container memlimit.Provider
		environ   string
		limit     int64
		text, log string
	}{
		"a limit":                 {memlimit.Limit(1000 << 20), "", 900 << 20, "900Mi", "GOMEMLIMIT is updated"},
		"no limit":                {failing(memlimit.ErrNoLimit), "", math.MaxInt64, "none", ""},
		"no cgroup":               {failing(memlimit.ErrNoCgroup), "", math.MaxInt64, "none", ""},
		"another system":          {failing(memlimit.ErrCgroupsNotSupported), "", math.MaxInt64, "none", ""},
		"not readable":            {failing(errors.New("open /proc/self/cgroup: denied")), "", math.MaxInt64, "none", "open /proc/self/cgroup: denied"},
		"a limit and one by hand": {memlimit.Limit(1000 << 20), "512MiB", math.MaxInt64, "none", "GOMEMLIMIT is already set"},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64) // the runtime has read GOMEMLIMIT when the process began
			if test.environ != "" {
				t.Setenv("GOMEMLIMIT", test.environ)
			}
			var log strings.Builder
			text := limitMemory(t.Context(), test.container, slog.New(slog.NewTextHandler(&log, nil)))
			if got := debug.SetMemoryLimit(-1); got != test.limit || text != test.text {
				t.Errorf("the limit is %d, %s; want %d, %s", got, text, test.limit, test.text)
			}
			if !strings.Contains(log.String(), test.log) || test.log == "" && log.Len() > 0 {
				t.Errorf("logged %q, want %q", log.String(), test.log)
			}
		})
	}
}

// Memory is returned once after each rollout, not while one pauses for a moment, and only once much of it is unused.
func TestMemoryIsReturnedAfterRollouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		writes := make(chan struct{}, 1)
		var unused atomic.Bool
		var freed atomic.Int32
		go func() { _ = returnMemory(ctx, writes, unused.Load, func() { freed.Add(1) }) }()
		for i, step := range []struct {
			busy, idle time.Duration
			unused     bool
			freed      int32
		}{
			{0, time.Hour, true, 0},                                // there was no rollout
			{2 * time.Second, rolloutEnd - 2*time.Second, true, 0}, // a pause
			{2 * time.Second, time.Hour, false, 0},
			{0, time.Minute, true, 1},
			{2 * time.Second, time.Hour, true, 2},
		} {
			unused.Store(step.unused)
			if step.busy > 0 {
				writes <- struct{}{}
				time.Sleep(step.busy)
				<-writes
			}
			time.Sleep(step.idle)
			synctest.Wait()
			if n := freed.Load(); n != step.freed {
				t.Errorf("step %d: memory has been returned %d times, want %d", i, n, step.freed)
			}
		}
		cancel()
	})
}

// Much is unused if there is more garbage than live memory, and nothing of it once it is returned.
func TestUnusedMemoryIsMeasured(t *testing.T) {
	debug.FreeOSMemory()
	if muchUnused() {
		t.Error("much is unused although everything was returned")
	}
	runtime.KeepAlive(make([]byte, 512<<20))
	runtime.GC() // one that began with the allocation has counted it as used
	if !muchUnused() {
		t.Error("little is unused although half a GiB is")
	}
	debug.FreeOSMemory()
}
