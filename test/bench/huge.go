package main

import (
	"context"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// huge is a fleet that is measured once it is idle. Its members share a port: with one for each, this process would have
// to open more files than many systems allow.
var huge = crowd{members: 10_000, placements: 20}

const (
	// hugeTime is how long everything may take to be available.
	hugeTime = 10 * time.Minute
	// calmTime is for what the first synchronization leaves behind: connections that are closed, and memory that is returned.
	calmTime = 2 * time.Minute
	// idleTime is how long the idle daemon is measured.
	idleTime = time.Minute
)

// settledHuge measures the memory and the processor time of the built binary while nothing happens.
func settledHuge(ctx context.Context, b *runner) (map[string]float64, error) {
	out := map[string]float64{}
	return out, huge.onMembers(simulated.Options{OnePort: true}, func(dir string, f *simulated.Fleet) error {
		return huge.onDaemon(ctx, b, dir, func(d *daemon) error { return huge.settle(ctx, b, d, f, out) })
	})
}

func (c crowd) settle(ctx context.Context, b *runner, d *daemon, members *simulated.Fleet, out map[string]float64) error {
	began := time.Now()
	if err := d.start(); err != nil {
		return err
	}
	err := c.poll(ctx, d, 10*time.Second, hugeTime, out, func(seen sample) error {
		out["s"] = time.Since(began).Seconds()
		b.note("settled: %.0fs: %d applied, %.0f available, %.0f MiB", out["s"], members.Requests().Of(fleet.Key{Verb: "APPLY"}), seen.available, seen.residentMiB)
		return nil
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, calmTime); err != nil {
		return err
	}
	used := func() (float64, error) { return d.gauge(ctx, "process_cpu_seconds_total") }
	before, err := used()
	if err != nil {
		return err
	}
	if err := wait(ctx, idleTime); err != nil {
		return err
	}
	after, err := used()
	if err != nil {
		return err
	}
	values, err := d.gauges(ctx, "process_resident_memory_bytes", "go_gc_heap_live_bytes", "process_open_fds", "go_goroutines")
	if err != nil {
		return err
	}
	out["idle CPU %"] = 100 * (after - before) / idleTime.Seconds()
	out["resident MiB"], out["live MiB"], out["files"], out["goroutines"] = values[0]/(1<<20), values[1]/(1<<20), values[2], values[3]
	return nil
}
