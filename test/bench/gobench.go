package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A benchRun is the benchmarks of one package that some figures need.
type benchRun struct {
	pkg   string
	names []string // with their sub-benchmarks: Select/objects=10
}

// benchRuns groups benchmarks by package.
func benchRuns(needed []figure) []benchRun {
	var runs []benchRun
	for _, f := range needed {
		if f.scene != "" {
			continue
		}
		i := slices.IndexFunc(runs, func(r benchRun) bool { return r.pkg == f.pkg })
		if i < 0 {
			runs = append(runs, benchRun{pkg: f.pkg})
			i = len(runs) - 1
		}
		if !slices.Contains(runs[i].names, f.bench) {
			runs[i].names = append(runs[i].names, f.bench)
		}
	}
	return runs
}

// pattern returns the value of the flag -test.bench: for each benchmark a regular expression for
// each part of its name.
func (r benchRun) pattern() string {
	var all []string
	for _, name := range r.names {
		parts := strings.Split("Benchmark"+name, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// written returns a name as the testing package prints it.
func written(name string) string { return strings.ReplaceAll(name, " ", "_") }

// goBenchmarks runs the benchmarks of a package b.count times, and adds the median of each result to
// the figures. The benchmarks alternate, so that other load on the machine affects all of them alike.
func (b *runner) goBenchmarks(ctx context.Context, r benchRun, into figures) error {
	dir, release, err := scratch()
	if err != nil {
		return err
	}
	defer release()
	binary := filepath.Join(dir, "benchmarks.test")
	if err := b.compile(ctx, r.pkg, binary); err != nil {
		return err
	}
	began := time.Now()
	var failure error
	samples := map[figure][]float64{}
	for i := 0; i < b.count && failure == nil; i++ {
		var out []byte
		out, failure = b.runBenchmarks(ctx, binary, r)
		for f, values := range parseBenchmarks(r.pkg, out) {
			samples[f] = append(samples[f], values...)
		}
	}
	for f, values := range samples {
		into[f] = median(values)
	}
	for _, name := range r.names {
		if failure == nil && samples[ns(r.pkg, name)] == nil {
			failure = fmt.Errorf("%s has no benchmark %s", r.pkg, name)
		}
	}
	b.note("benchmarks of %s (%s)", r.pkg, time.Since(began).Round(time.Second))
	return failure
}

func (b *runner) compile(ctx context.Context, pkg, target string) error {
	command := exec.CommandContext(ctx, "go", "test", "-c", "-o", target, pkg)
	command.Dir = b.root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build benchmarks of %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// runBenchmarks runs each benchmark once. After a failure it returns the output up to there.
func (b *runner) runBenchmarks(ctx context.Context, binary string, r benchRun) ([]byte, error) {
	args := []string{"-test.run=^$", "-test.bench=" + r.pattern(), "-test.benchmem", "-test.timeout=20m"}
	if strings.HasPrefix(r.pkg, "./placement") {
		args = append(args, "-test.cpu=1") // the goals of pure packages are for one core
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir = filepath.Join(b.root, r.pkg)
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("benchmarks of %s: %w\n%s%s", r.pkg, err, out.Bytes(), problem.Bytes())
	}
	return out.Bytes(), nil
}

// BenchmarkName/sub-2   	     100	      1234 ns/op	     56 B/op	       7 allocs/op
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// parseBenchmarks parses the output of a test binary. A benchmark that ran several times has
// several values for each unit.
func parseBenchmarks(pkg string, out []byte) map[figure][]float64 {
	samples := map[figure][]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		found := benchmarkLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		for pairs := strings.Fields(found[2]); len(pairs) >= 2; pairs = pairs[2:] {
			if v, err := strconv.ParseFloat(pairs[0], 64); err == nil {
				f := figure{pkg: pkg, bench: found[1], name: pairs[1]}
				samples[f] = append(samples[f], v)
			}
		}
	}
	return samples
}

// median returns the median, zero for no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
