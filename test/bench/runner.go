package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// A runner runs measurements, and starts the clusters that they need.
type runner struct {
	root     string
	progress io.Writer
	count    int // repetitions of each Go benchmark

	fleet   *fleet.Fleet
	audited bool // whether the fleet's API servers write audit logs
}

// A scene measures something that needs more than a function, such as clusters, a repository or
// a daemon. It returns its figures by name.
type scene struct {
	name string
	run  func(context.Context, *runner) (map[string]float64, error)
}

// scenes in the order in which they run: those that share a fleet are adjacent.
var scenes = []scene{
	{"load", load},
	{"charts", charts},
	{"sync", firstSync},
	{"change", oneChange},
	{"repair", repairs},
	{"daemon", daemonScene},
	{"forge", forgeScene},
	{"memory", memory},
	{"update-run", updateRun},
	{"scale", scale(crowd{members: 300, placements: 100})},
	{"scale-large", scale(crowd{members: 1000, placements: 100, changes: 5})},
	{"settled-huge", settledHuge},
}

// measure runs the scenes and benchmarks that some goals need. It continues after a failure.
func (b *runner) measure(ctx context.Context, goals []goal) (figures, error) {
	measured := figures{}
	var needed []figure
	for _, g := range goals {
		needed = append(append(needed, g.value...), g.per...)
	}
	var errs []error
	for _, s := range scenes {
		if !slices.ContainsFunc(needed, func(f figure) bool { return f.scene == s.name }) {
			continue
		}
		began := time.Now()
		got, err := s.run(ctx, b)
		if err != nil {
			errs = append(errs, fmt.Errorf("scene %s: %w", s.name, err))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			measured[of(s.name, name)] = got[name]
			b.note("%s: %s %s", s.name, name, number(got[name]))
		}
		b.note("scene %s (%s)", s.name, time.Since(began).Round(time.Second))
	}
	b.close() // the clusters would use CPU time
	for _, r := range benchRuns(needed) {
		if err := b.goBenchmarks(ctx, r, measured); err != nil {
			errs = append(errs, err)
		}
	}
	return measured, errors.Join(errs...)
}

// note prints a line of progress.
func (b *runner) note(format string, args ...any) {
	fmt.Fprintf(b.progress, "# "+format+"\n", args...)
}

// clusters returns four running clusters. With audit their API servers write audit logs, which
// takes a little of their time.
func (b *runner) clusters(ctx context.Context, audit bool) (*fleet.Fleet, error) {
	if b.fleet != nil && b.audited == audit {
		return b.fleet, nil
	}
	b.close()
	f, err := fleet.Start(ctx, fleet.Options{Clusters: 4, Audit: audit, Output: io.Discard})
	if err != nil {
		return nil, err
	}
	b.fleet, b.audited = f, audit
	return f, nil
}

func (b *runner) close() {
	if b.fleet == nil {
		return
	}
	if err := b.fleet.Close(); err != nil {
		b.note("clusters: %v", err)
	}
	b.fleet = nil
}

// scratch returns a new temporary directory, which release removes.
func scratch() (dir string, release func(), err error) {
	dir, err = os.MkdirTemp("", "bench-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// fresh returns a name that has not been used before.
func fresh(prefix string) string { return fmt.Sprintf("%s-%08x", prefix, rand.Uint32()) }

// milliseconds converts a duration, for figures in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
