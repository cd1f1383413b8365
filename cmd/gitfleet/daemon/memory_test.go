package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
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

// Memory is returned once after each rollout or load, not while one pauses for a moment, and only if much of it is unused. A large heap
// may hold less garbage from then on, until there is more to do.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	const small, large, rate = 20 << 20, 1 << 30, 100 << 20
	for name, test := range map[string]struct {
		live  uint64
		steps []memoryStep
	}{
		"a pause":           {small, []memoryStep{{3 * time.Second, true, 0, 0}, {restTime - time.Second, false, 0, 0}, {time.Second, true, 0, 0}, {restTime - time.Second, false, 0, 0}}},
		"a rollout":         {small, []memoryStep{{3 * time.Second, true, 0, 0}, {time.Hour, false, 1, 0}, {time.Second, true, 1, busyGarbage}, {time.Minute, false, 2, busyGarbage}}},
		"a large heap":      {large, []memoryStep{{time.Minute, false, 1, restGarbage}, {time.Second, true, 1, busyGarbage}, {time.Minute, false, 2, restGarbage}}},
		"the start is work": {small, []memoryStep{{time.Minute, false, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checkMemory(t, heap{live: test.live, size: 3 * (test.live + minUnused)}, rate, test.steps)
			})
			synctest.Test(t, func(t *testing.T) { // nothing is unused
				for i := range test.steps {
					test.steps[i].freed = 0
				}
				checkMemory(t, heap{live: test.live, size: test.live}, rate, test.steps)
			})
		})
	}
}

// A memoryStep is a time during which the daemon is busy or not, and how often memory has been returned and what was set as percentage at
// its end.
type memoryStep struct {
	long    time.Duration
	busy    bool
	freed   int32
	percent int32
}

func checkMemory(t *testing.T, h heap, rate uint64, steps []memoryStep) {
	ctx, cancel := context.WithCancel(t.Context())
	var freed, percent atomic.Int32
	var allocated atomic.Uint64
	k := memoryKeeper{
		heap:      func() heap { h.allocated = allocated.Load(); return h },
		free:      func() { freed.Add(1) },
		gcPercent: func(p int) { percent.Store(int32(p)) },
	}
	var running sync.WaitGroup
	running.Go(func() { _ = k.run(ctx) })
	synctest.Wait()
	time.Sleep(time.Second / 2) // between two looks
	for i, s := range steps {
		for range s.long / time.Second {
			if s.busy {
				allocated.Add(rate)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if freed.Load() != s.freed || percent.Load() != s.percent {
			t.Errorf("step %d: memory has been returned %d times and the percentage is %d, want %d and %d", i, freed.Load(), percent.Load(), s.freed, s.percent)
		}
	}
	cancel()
	running.Wait()
	if percent.Load() != busyGarbage {
		t.Errorf("the percentage is %d at the end", percent.Load())
	}
}

// Much is unused if there is more garbage than live memory, and nothing of it once it is returned.
func TestUnusedMemoryIsMeasured(t *testing.T) {
	debug.FreeOSMemory()
	if readHeap().muchUnused() {
		t.Error("much is unused although everything was returned")
	}
	before := readHeap().allocated
	runtime.KeepAlive(make([]byte, 512<<20))
	runtime.GC() // one that began with the allocation has counted it as used
	if h := readHeap(); !h.muchUnused() || h.allocated-before < 512<<20 {
		t.Errorf("little is unused although half a GiB is: %+v", h)
	}
	debug.FreeOSMemory()
}
