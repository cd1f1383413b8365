package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// longRollout is the time with writes in flight, in sum, after which memory is returned, and rolloutEnd is how long there must have been
	// none.
	longRollout = 5 * time.Second
	rolloutEnd  = 5 * time.Second
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

// returnMemory returns unused memory to the operating system after a long rollout: the heap has grown to twice what is needed, and the
// Go runtime would keep it for the next rollout. writes is the semaphore of the writes in flight. It ends once ctx is done.
func returnMemory(ctx context.Context, writes chan struct{}, free func()) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	busy, idle := time.Duration(0), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if len(writes) > 0 {
			busy, idle = busy+time.Second, 0
			continue
		}
		if idle += time.Second; idle >= rolloutEnd && busy >= longRollout {
			free()
			busy = 0
		}
	}
}
