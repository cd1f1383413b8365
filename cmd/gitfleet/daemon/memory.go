package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// rolloutEnd is how long no write must have been in flight until memory is returned.
	rolloutEnd = 5 * time.Second
	// minUnused is how much of the memory must be unused, besides half as much as is used.
	minUnused = 64 << 20
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

// returnMemory returns unused memory to the operating system after a large rollout: the heap has grown to twice what is needed, and the
// Go runtime would keep it for the next rollout. writes is the semaphore of the writes in flight, unused reports whether much is unused,
// and free returns it. It ends once ctx is done.
func returnMemory(ctx context.Context, writes chan struct{}, unused func() bool, free func()) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	written, idle := false, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if len(writes) > 0 {
			written, idle = true, 0
			continue
		}
		idle += time.Second
		if written && idle >= rolloutEnd && unused() {
			free()
			written = false
		}
	}
}

// muchUnused reports whether much of the memory of the heap is neither in use nor returned.
func muchUnused() bool {
	heap := []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	runtimemetrics.Read(heap)
	live := heap[0].Value.Uint64()
	return heap[1].Value.Uint64()+heap[2].Value.Uint64()+heap[3].Value.Uint64() > live+live/2+minUnused
}
