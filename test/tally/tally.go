package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A tally counts tests. A subtest counts as a test of its own.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	// output is that of the tests and packages that have not ended yet.
	output map[name]*strings.Builder
	// failedPackages are the packages with a failed test.
	failedPackages map[string]bool
	// skips are the skipped tests, with the reasons.
	skips []string
	// failures are the failed tests, and the packages that failed without one, with the first lines
	// of their output.
	failures []string
}

// A name is the name of a test, or of a package if Test is empty.
type name struct{ Package, Test string }

// An event is a line of the output of go test -json.
type event struct {
	name
	Action  string
	Output  string
	Elapsed float64
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[name]*strings.Builder{}, failedPackages: map[string]bool{}}
}

// read counts the events of one go test -json. Lines that are not events are printed.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			t.out.Write(line)
		default:
			t.count(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) count(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		if t.output[e.name] == nil {
			t.output[e.name] = &strings.Builder{}
		}
		t.output[e.name].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.ended(e)
		} else {
			t.tested(e)
		}
	}
}

// tested counts a test that has ended.
func (t *tally) tested(e event) {
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		t.skips = append(t.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, start(t.words(e.name), 1)))
	case "fail":
		t.failed++
		t.failedPackages[e.Package] = true
		t.failures = append(t.failures, fmt.Sprintf("%s %s: %s", e.Package, e.Test, start(t.words(e.name), 20)))
		fmt.Fprintf(t.out, "FAIL  %s %s\n%s", e.Package, e.Test, t.words(e.name))
	}
	delete(t.output, e.name)
}

// ended prints the result of a package. A package that fails without a failed test, for instance
// because it does not build, counts as one failure.
func (t *tally) ended(e event) {
	switch {
	case e.Action == "pass":
		fmt.Fprintf(t.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case e.Action == "fail":
		if !t.failedPackages[e.Package] {
			t.failed++
			t.failures = append(t.failures, fmt.Sprintf("%s: %s", e.Package, start(t.words(e.name), 20)))
		}
		fmt.Fprintf(t.out, "FAIL  %s  %.1fs\n%s", e.Package, e.Elapsed, t.words(e.name))
	}
	delete(t.output, e.name)
}

func (t *tally) words(n name) string {
	if said := t.output[n]; said != nil {
		return said.String()
	}
	return ""
}

// start returns the first lines that a test itself printed, at most n.
func start(output string, n int) string {
	var own []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			own = append(own, line)
		}
	}
	if len(own) == 0 {
		return "no output"
	}
	return strings.Join(own[:min(n, len(own))], "\n      ")
}

// sum prints the skipped and the failed tests, and how many tests passed, failed and were skipped.
func (t *tally) sum() {
	for _, s := range t.skips {
		fmt.Fprintln(t.out, "skip ", s)
	}
	for _, f := range t.failures {
		fmt.Fprintln(t.out, "FAIL ", f)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}
