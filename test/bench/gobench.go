package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A benchRun is one invocation of a test binary: sub-benchmarks with the same parent, so that
// those which are compared run right after one another.
type benchRun struct {
	pkg    string
	parent string   // such as Select; may be empty
	leaves []string // last parts of the names
}

// benchRuns groups the benchmarks that some figures need.
func benchRuns(needed []figure) []benchRun {
	var runs []benchRun
	for _, f := range needed {
		if f.scene != "" {
			continue
		}
		parent, leaf := "", f.bench
		if i := strings.LastIndexByte(f.bench, '/'); i >= 0 {
			parent, leaf = f.bench[:i], f.bench[i+1:]
		}
		i := slices.IndexFunc(runs, func(r benchRun) bool { return r.pkg == f.pkg && r.parent == parent && parent != "" })
		if i < 0 {
			runs = append(runs, benchRun{pkg: f.pkg, parent: parent})
			i = len(runs) - 1
		}
		if !slices.Contains(runs[i].leaves, leaf) {
			runs[i].leaves = append(runs[i].leaves, leaf)
		}
	}
	return runs
}

// pattern returns the value of the flag -test.bench: a regular expression for each part of a
// name.
func (r benchRun) pattern() string {
	var leaves []string
	for _, l := range r.leaves {
		leaves = append(leaves, regexp.QuoteMeta(written(l)))
	}
	last := "^(" + strings.Join(leaves, "|") + ")$"
	if r.parent == "" {
		return "^Benchmark" + strings.TrimPrefix(last, "^")
	}
	parts := strings.Split(r.parent, "/")
	parts[0] = "Benchmark" + parts[0]
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(written(p)) + "$"
	}
	return strings.Join(append(parts, last), "/")
}

func (r benchRun) String() string {
	return r.pkg + " " + strings.Trim(r.parent+"/"+strings.Join(r.leaves, ","), "/")
}

// written returns a name as the testing package prints it.
func written(name string) string { return strings.ReplaceAll(name, " ", "_") }

// goBenchmarks runs benchmarks, and adds their results to the figures.
func (b *runner) goBenchmarks(ctx context.Context, runs []benchRun, into figures) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binaries := map[string]string{}
	for _, r := range runs {
		if binaries[r.pkg] == "" {
			binaries[r.pkg] = filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(r.pkg, "./"), "/", "-")+".test")
			if err := b.compile(ctx, r.pkg, binaries[r.pkg]); err != nil {
				return err
			}
		}
		began := time.Now()
		out, err := b.runBenchmark(ctx, binaries[r.pkg], r)
		if err != nil {
			return err
		}
		samples := parseBenchmarks(r.pkg, out)
		if len(samples) == 0 {
			return fmt.Errorf("%s: no such benchmark", r)
		}
		for f, values := range samples {
			into[f] = median(values)
		}
		b.note("%s (%s)", r, time.Since(began).Round(time.Second))
	}
	return nil
}

func (b *runner) compile(ctx context.Context, pkg, target string) error {
	command := exec.CommandContext(ctx, "go", "test", "-c", "-o", target, pkg)
	command.Dir = b.root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build benchmarks of %s: %w\n%s", pkg, err, out)
	}
	return nil
}

func (b *runner) runBenchmark(ctx context.Context, binary string, r benchRun) ([]byte, error) {
	args := []string{"-test.run=^$", "-test.bench=" + r.pattern(), "-test.benchmem", "-test.count=" + strconv.Itoa(b.count), "-test.timeout=20m"}
	if strings.HasPrefix(r.pkg, "./placement") {
		args = append(args, "-test.cpu=1") // the goals of pure packages are for one core
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir = filepath.Join(b.root, r.pkg)
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", r, err, out.Bytes(), problem.Bytes())
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
