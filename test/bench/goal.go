package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// A goal is an upper limit for a figure. The figure is the sum of value, divided by the sum of
// per, the baseline from the same run, if there is one.
type goal struct {
	name  string
	value []figure
	per   []figure
	scale float64 // the figure is multiplied by it; 1 if zero
	unit  string
	limit float64
	why   string // what the limit is for
}

// A figure is one measured number, of a scene or of a Go benchmark.
type figure struct {
	scene string // empty for a benchmark
	pkg   string // of the benchmark: ./placement
	bench string // without "Benchmark", with its sub-benchmarks: Select/objects=10
	name  string // of the scene's figure, or the unit of the benchmark: ns/op
}

func (f figure) String() string {
	if f.scene != "" {
		return f.scene + " " + f.name
	}
	return f.pkg + " " + f.bench + " " + f.name
}

// of returns a figure of a scene.
func of(scene, name string) figure { return figure{scene: scene, name: name} }

// ns returns the time of one operation of a Go benchmark.
func ns(pkg, bench string) figure { return figure{pkg: pkg, bench: written(bench), name: "ns/op"} }

// allocated returns the bytes that one operation of a Go benchmark allocates.
func allocated(pkg, bench string) figure {
	return figure{pkg: pkg, bench: written(bench), name: "B/op"}
}

// figures are the measured values.
type figures map[figure]float64

// sum returns the sum of some figures, or an error that names a missing one.
func (fs figures) sum(list []figure) (float64, error) {
	total := 0.0
	for _, f := range list {
		v, ok := fs[f]
		if !ok {
			return 0, fmt.Errorf("%s was not measured", f)
		}
		total += v
	}
	return total, nil
}

// A result is the outcome of a goal.
type result struct {
	goal
	got   float64
	short bool
	err   error // why it could not be measured
}

// choose returns the goals whose name matches, in their order.
func choose(all []goal, pattern *regexp.Regexp) []goal {
	var chosen []goal
	for _, g := range all {
		if pattern.MatchString(g.name) {
			chosen = append(chosen, g)
		}
	}
	return chosen
}

// judge compares the measured values with the goals.
func judge(goals []goal, measured figures) []result {
	var results []result
	for _, g := range goals {
		r := result{goal: g}
		r.got, r.err = g.reckon(measured)
		r.short = r.err == nil && !(r.got <= g.limit)
		results = append(results, r)
	}
	return results
}

func (g goal) reckon(measured figures) (float64, error) {
	got, err := measured.sum(g.value)
	if err != nil {
		return 0, err
	}
	if g.scale != 0 {
		got *= g.scale
	}
	if len(g.per) == 0 {
		return got, nil
	}
	baseline, err := measured.sum(g.per)
	if err != nil {
		return 0, err
	}
	if baseline <= 0 {
		return 0, fmt.Errorf("its baseline is %v", baseline)
	}
	return got / baseline, nil
}

// number formats a value with as many digits as its precision justifies.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
