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

// A bed is what things are measured on.
type bed struct {
	root     string
	progress io.Writer
	count    int // runs of a Go benchmark

	fleet   *fleet.Fleet
	audited bool // the fleet keeps a record of requests
}

// A scene measures something that takes more than a function: it has clusters, a
// repository, a daemon. It returns its figures by name.
type scene struct {
	name string
	run  func(context.Context, *bed) (map[string]float64, error)
}

// scenes in the order in which they are run: those that share a fleet are
// neighbours.
var scenes = []scene{
	{"load", load},
	{"sync", firstSync},
	{"change", oneChange},
	{"repair", repairs},
	{"daemon", daemonAtWork},
	{"forge", driftAtWork},
	{"memory", memory},
}

// measure runs what some goals need. What fails keeps nothing else from being
// measured.
func (b *bed) measure(ctx context.Context, goals []goal) (figures, error) {
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
	b.close() // its clusters would take their share of the processor
	for _, r := range benchRuns(needed) {
		if err := b.goBenchmarks(ctx, []benchRun{r}, measured); err != nil {
			errs = append(errs, err)
		}
	}
	return measured, errors.Join(errs...)
}

// note tells of progress, beside the answer.
func (b *bed) note(format string, args ...any) {
	fmt.Fprintf(b.progress, "# "+format+"\n", args...)
}

// clusters returns four clusters that run. With audit they keep a record of what
// they are asked, which takes a little of their time.
func (b *bed) clusters(ctx context.Context, audit bool) (*fleet.Fleet, error) {
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

func (b *bed) close() {
	if b.fleet == nil {
		return
	}
	if err := b.fleet.Close(); err != nil {
		b.note("clusters: %v", err)
	}
	b.fleet = nil
}

// scratch returns a directory that is gone when release is called.
func scratch() (dir string, release func(), err error) {
	dir, err = os.MkdirTemp("", "bench-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// fresh is a name that nothing had before.
func fresh(prefix string) string { return fmt.Sprintf("%s-%08x", prefix, rand.Uint32()) }

// milliseconds is what times are told in.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
