package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// printResults prints a line for each goal, and a summary.
func printResults(out io.Writer, results []result) {
	short, failed := 0, 0
	for _, r := range results {
		got, verdict := number(r.got), "ok"
		switch {
		case r.err != nil:
			got, verdict = "-", "unmeasured"
			failed++
		case r.short:
			verdict = "short"
			short++
		}
		fmt.Fprintf(out, "%-46s %9s %-14s goal<=%-7s %s\n", r.name, got, r.unit, number(r.limit), verdict)
	}
	line := fmt.Sprintf("%d of %d goals are reached", len(results)-short-failed, len(results))
	if short > 0 {
		line += fmt.Sprintf(", %d are short", short)
	}
	if failed > 0 {
		line += fmt.Sprintf(", %d could not be measured", failed)
	}
	fmt.Fprintln(out, line)
}

// A document is build/bench.json.
type document struct {
	At     time.Time          `json:"at"`
	Commit string             `json:"commit,omitempty"` // of the checkout, with "+" if it has changes
	Go     string             `json:"go"`
	CPUs   int                `json:"cpus"`
	Goals  []documentGoal     `json:"goals"`
	All    map[string]float64 `json:"figures"`
}

type documentGoal struct {
	Name     string             `json:"name"`
	Value    *float64           `json:"value"` // null if it could not be measured
	Unit     string             `json:"unit"`
	Limit    float64            `json:"limit"`
	Verdict  string             `json:"verdict"` // ok, short, unmeasured
	Error    string             `json:"error,omitempty"`
	Why      string             `json:"why"`
	Figures  map[string]float64 `json:"figures"`
	Baseline map[string]float64 `json:"baseline,omitempty"`
}

func writeJSON(path, root string, results []result, measured figures) error {
	d := document{At: time.Now().UTC(), Commit: commitOf(root), Go: runtime.Version(), CPUs: runtime.NumCPU(), All: map[string]float64{}}
	for f, v := range measured {
		d.All[f.String()] = v
	}
	for _, r := range results {
		g := documentGoal{
			Name: r.name, Unit: r.unit, Limit: r.limit, Verdict: "ok", Why: r.why,
			Figures: pick(measured, r.value), Baseline: pick(measured, r.per),
		}
		switch {
		case r.err != nil:
			g.Verdict, g.Error = "unmeasured", r.err.Error()
		case r.short:
			g.Verdict = "short"
		}
		if r.err == nil {
			g.Value = &r.got
		}
		d.Goals = append(d.Goals, g)
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func pick(measured figures, list []figure) map[string]float64 {
	out := map[string]float64{}
	for _, f := range list {
		if v, ok := measured[f]; ok {
			out[f.String()] = v
		}
	}
	return out
}

// commitOf returns the commit of the checkout; empty if git fails.
func commitOf(root string) string {
	ask := func(args ...string) (string, error) {
		command := exec.Command("git", args...)
		command.Dir = root
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := ask("rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	if changed, err := ask("status", "--porcelain"); err == nil && changed != "" {
		commit += "+"
	}
	return commit
}
