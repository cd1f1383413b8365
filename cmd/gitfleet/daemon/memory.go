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
