package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// busy is how much the daemon allocates in a second while it loads commits or applies them; at rest it is less by far, also with
	// thousands of clusters.
	busy = 32 << 20
	// restTime is how long it must not have been busy until memory is returned.
	restTime = 5 * time.Second
	// minUnused is how much of the heap must be unused for that, and half as much as is live.
	minUnused = 32 << 20
)

// How much garbage there may be, in percent of what is live. While the daemon is busy it is the default of the Go runtime: less takes more
// processor time than memory is saved. At rest there are minutes between two collections, and a heap from minLarge on may hold less.
const (
	busyGarbage = 100
	restGarbage = 50
	minLarge    = 512 << 20
)

// memoryRefresh is the time between two looks at the limit of the container, which can be resized
// while it runs.
const memoryRefresh = time.Minute

// limitMemory sets the memory limit of the Go runtime to nine tenths of that of the container, so that
// garbage is collected more often before the kernel ends the process, and keeps it current until ctx is
// done. A GOMEMLIMIT in the environment has precedence. It returns the limit as text.
func limitMemory(ctx context.Context, container memlimit.Provider, log *slog.Logger) string {
	known := func() (uint64, error) {
		limit, err := container()
		if errors.Is(err, memlimit.ErrCgroupsNotSupported) || errors.Is(err, memlimit.ErrNoCgroup) {
			err = memlimit.ErrNoLimit
		}
		return limit, err
	}
	// An error is logged, and the runtime then keeps its limit.
	_, _ = memlimit.Set(memlimit.WithProvider(known), memlimit.WithRefreshInterval(ctx, memoryRefresh), memlimit.WithLogger(log))
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return "none"
	}
	return resource.NewQuantity(limit>>20<<20, resource.BinarySI).String()
}

// heap is what the Go runtime says of its heap, in bytes.
type heap struct {
	// allocated is what was allocated since the process began, live what the last garbage collection has kept.
	allocated, live uint64
	// size is what is in use, garbage, or unused and not returned to the operating system.
	size uint64
}

func readHeap() heap {
	of := []runtimemetrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	runtimemetrics.Read(of)
	value := func(i int) uint64 { return of[i].Value.Uint64() }
	return heap{allocated: value(0), live: value(1), size: value(2) + value(3) + value(4)}
}

// muchUnused reports whether much of the heap is neither in use nor returned.
func (h heap) muchUnused() bool { return h.size > h.live+max(h.live/2, minUnused) }

// A memoryKeeper keeps the heap small while the daemon has little to do. In a rollout, or while a large commit is loaded, the heap grows
// to twice what is live, and the Go runtime would keep it at that size.
type memoryKeeper struct {
	heap func() heap
	// free returns unused memory to the operating system, and gcPercent sets how much garbage there may be for what is live.
	free      func()
	gcPercent func(percent int)
}

// newMemoryKeeper returns a keeper of the memory of the process. A GOGC in the environment has precedence over its own.
func newMemoryKeeper() memoryKeeper {
	k := memoryKeeper{heap: readHeap, free: debug.FreeOSMemory, gcPercent: func(percent int) { debug.SetGCPercent(percent) }}
	if os.Getenv("GOGC") != "" {
		k.gcPercent = func(int) {}
	}
	return k
}

// run keeps the memory until ctx is done. Once the daemon has been busy and then at rest, unused memory is returned, and a large heap may
// hold less garbage until the daemon is busy again.
func (k memoryKeeper) run(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer k.gcPercent(busyGarbage)
	before, atRest, returned, resting := k.heap().allocated, false, false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		h := k.heap()
		grown := h.allocated - before
		before = h.allocated
		if grown > busy {
			if resting = 0; atRest {
				atRest, returned = false, false
				k.gcPercent(busyGarbage)
			}
			continue
		}
		if resting += time.Second; resting < restTime {
			continue
		}
		if !atRest && h.live >= minLarge {
			k.gcPercent(restGarbage)
		}
		atRest = true
		if !returned && h.muchUnused() { // perhaps only after the next collection, which measures what is live
			returned = true
			k.free()
		}
	}
}
