package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

// Each goal names a scene that exists, or a benchmark that is in the sources. Otherwise a goal
// without a measurement would only be noticed by running everything.
func TestEveryGoalHasAMeasurement(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range goals {
		if seen[g.name] || g.name == "" || strings.ContainsAny(g.name+g.unit, " \t") {
			t.Errorf("goal %q (%s) is there twice, or is not one word", g.name, g.unit)
		}
		seen[g.name] = true
		if g.unit == "" || g.why == "" || len(g.value) == 0 {
			t.Errorf("%s: unit, value and why must be set", g.name)
		}
		for _, f := range append(slices.Clone(g.value), g.per...) {
			if f.scene != "" {
				if !slices.ContainsFunc(scenes, func(s scene) bool { return s.name == f.scene }) {
					t.Errorf("%s: there is no scene %q", g.name, f.scene)
				}
				continue
			}
			top, _, _ := strings.Cut(f.bench, "/")
			if !declared(t, f.pkg, "func Benchmark"+top+"(") {
				t.Errorf("%s: there is no benchmark %s in %s", g.name, top, f.pkg)
			}
		}
	}
}

// declared reports whether a test file of a package contains a text.
func declared(t *testing.T, pkg, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(source, []byte(text)) {
			return true
		}
	}
	return false
}

func TestGoalsAreCompared(t *testing.T) {
	measured := figures{of("s", "a"): 3, of("s", "b"): 1, of("s", "base"): 2, of("s", "none"): 0}
	tests := map[string]struct {
		goal
		got   float64
		short bool
		err   string
	}{
		"below":             {goal{value: []figure{of("s", "a")}, limit: 3.5}, 3, false, ""},
		"just there":        {goal{value: []figure{of("s", "a")}, limit: 3}, 3, false, ""},
		"above":             {goal{value: []figure{of("s", "a")}, limit: 2.9}, 3, true, ""},
		"sum by a baseline": {goal{value: []figure{of("s", "a"), of("s", "b")}, per: []figure{of("s", "base")}, limit: 2}, 2, false, ""},
		"scaled":            {goal{value: []figure{of("s", "a")}, scale: 1e-3, limit: 1}, 0.003, false, ""},
		"not measured":      {goal{value: []figure{of("s", "c")}, limit: 1}, 0, false, "s c was not measured"},
		"no baseline":       {goal{value: []figure{of("s", "a")}, per: []figure{of("s", "none")}, limit: 1}, 0, false, "its baseline is 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := judge([]goal{test.goal}, measured)[0]
			if r.got != test.got || r.short != test.short || (r.err == nil) != (test.err == "") || r.err != nil && r.err.Error() != test.err {
				t.Errorf("got %v, short %t, %v", r.got, r.short, r.err)
			}
		})
	}
}

func TestResultLinesAreMachineReadable(t *testing.T) {
	results := []result{
		{goal: goal{name: "a/b", unit: "x", limit: 1.15}, got: 1.0832},
		{goal: goal{name: "c", unit: "requests", limit: 0}, got: 12, short: true},
		{goal: goal{name: "d", unit: "ms", limit: 150}, err: errors.New("no clusters")},
	}
	var out bytes.Buffer
	printResults(&out, results)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := [][]string{
		{"a/b", "1.08", "x", "goal<=1.15", "ok"},
		{"c", "12", "requests", "goal<=0", "short"},
		{"d", "-", "ms", "goal<=150", "unmeasured"},
	}
	for i, fields := range want {
		if got := strings.Fields(lines[i]); !slices.Equal(got, fields) {
			t.Errorf("%q, want %q", got, fields)
		}
	}
	if last := lines[len(lines)-1]; last != "1 of 3 goals are reached, 1 are short, 1 could not be measured" {
		t.Errorf("last line is %q", last)
	}
}

func TestJSONHasAllResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "bench.json")
	g := goal{name: "a", unit: "x", limit: 1, value: []figure{of("s", "a")}, per: []figure{of("s", "base")}}
	measured := figures{of("s", "a"): 4, of("s", "base"): 2}
	if err := writeJSON(path, t.TempDir(), append(judge([]goal{g}, measured), result{goal: g, err: errors.New("why")}), measured); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if got := d.Goals[0]; *got.Value != 2 || got.Verdict != "short" || got.Figures["s a"] != 4 || got.Baseline["s base"] != 2 {
		t.Errorf("%+v", got)
	}
	if got := d.Goals[1]; got.Value != nil || got.Verdict != "unmeasured" || got.Error != "why" {
		t.Errorf("%+v", got)
	}
}

func TestBenchmarkOutputIsParsed(t *testing.T) {
	const out = `goos: linux
BenchmarkFetch/files=10000/gitfleet-2         	      60	  19000000 ns/op	  512 B/op	       7 allocs/op
BenchmarkFetch/files=10000/gitfleet-2         	      62	  21000000 ns/op	  514 B/op	       7 allocs/op
BenchmarkFor/a_tenth/next_turn                	     100	  5.5 ns/op
BenchmarkBroken-2 --- FAIL
PASS
`
	got := parseBenchmarks("./p", []byte(out))
	if values := got[ns("./p", "Fetch/files=10000/gitfleet")]; !slices.Equal(values, []float64{19e6, 21e6}) {
		t.Errorf("times are %v", values)
	}
	if values := got[figure{pkg: "./p", bench: "Fetch/files=10000/gitfleet", name: "allocs/op"}]; !slices.Equal(values, []float64{7, 7}) {
		t.Errorf("allocations are %v", values)
	}
	if values := got[ns("./p", "For/a tenth/next turn")]; !slices.Equal(values, []float64{5.5}) {
		t.Errorf("a name with spaces: %v", values)
	}
}

// The benchmarks of a package run in one call, and no others of the package run.
func TestBenchmarksAreSelectedByPattern(t *testing.T) {
	runs := benchRuns([]figure{
		ns("./g", "Fetch/n=1/ours"), of("scene", "x"), ns("./g", "Fetch/n=1/git"), ns("./g", "Fetch/n=1/ours"), ns("./h", "A (b)/c"), ns("./g", "Whole"),
	})
	var got []string
	for _, r := range runs {
		got = append(got, r.pkg+" "+r.pattern())
	}
	want := []string{
		`./g ^BenchmarkFetch$/^n=1$/^ours$|^BenchmarkFetch$/^n=1$/^git$|^BenchmarkWhole$`,
		`./h ^BenchmarkA_\(b\)$/^c$`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for _, r := range runs {
		for part := range strings.FieldsFuncSeq(r.pattern(), func(c rune) bool { return c == '/' || c == '|' }) {
			if _, err := regexp.Compile(part); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 2: {5, 1, 2}, 3: {9, 1, 2, 4}} {
		if got := median(values); got != want {
			t.Errorf("median of %v is %v", values, got)
		}
	}
}

// Watches, probes and discovery are not counted as requests for objects. Writes of inventories
// are counted separately from writes of objects.
func TestRequestLogIsCounted(t *testing.T) {
	event := func(verb, resource, namespace, name, uri string) fleet.Event {
		e := fleet.Event{Verb: verb, URI: uri}
		e.Object.Resource, e.Object.Namespace, e.Object.Name = resource, namespace, name
		return e
	}
	var got tally
	for _, e := range []fleet.Event{
		event("get", "", "", "", "/readyz"),
		event("list", "nodes", "", "", "/api/v1/nodes?limit=500"),
		event("watch", "configmaps", "", "", "/api/v1/configmaps?watch=true&labelSelector=x"),
		event("list", "namespaces", "", "", "/api/v1/namespaces?labelSelector=x"),
		event("patch", "configmaps", "gitfleet-system", "inventory-a", "/…"),
		event("patch", "namespaces", "", "gitfleet-system", "/…"),
		event("patch", "namespaces", "", "web", "/…"),
		event("delete", "deployments", "web", "a", "/…"),
	} {
		got.add(e)
	}
	if want := (tally{objects: 5, objectWrites: 2, inventoryWrites: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestArgumentsOverrideTheEnvironment(t *testing.T) {
	chosen := func(args ...string) []string {
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, g := range choose([]goal{{name: "git/poll"}, {name: "sync/time"}, {name: "hub/one"}}, o.pattern) {
			names = append(names, g.name)
		}
		return names
	}
	t.Setenv("BENCH", "")
	if got := chosen(); len(got) != 3 {
		t.Errorf("without a pattern: %v", got)
	}
	t.Setenv("BENCH", "^git")
	if got := chosen(); !slices.Equal(got, []string{"git/poll"}) {
		t.Errorf("by the environment: %v", got)
	}
	if got := chosen("hub", "sync"); !slices.Equal(got, []string{"sync/time", "hub/one"}) {
		t.Errorf("by arguments: %v", got)
	}
	if _, err := parse([]string{"["}, io.Discard); err == nil {
		t.Error("a pattern that is none is accepted")
	}
}

func TestContentHasTheGivenMix(t *testing.T) {
	list := mix("web", 500)
	kinds := map[string]int{}
	for _, o := range list {
		kinds[o.kind]++
		if o.kind == "ConfigMap" && (len(o.json) < 900 || len(o.json) > 1500) {
			t.Fatalf("a ConfigMap of %d bytes", len(o.json))
		}
	}
	if kinds["Namespace"] != 1 || kinds["ConfigMap"] != 450 || kinds["Deployment"] != 49 {
		t.Errorf("%v", kinds)
	}
	if got := list[10]; got.path != "/apis/apps/v1/namespaces/web/deployments/app-0010" || got.file != "apps/deployment-app-0010.yaml" {
		t.Errorf("%s, %s", got.path, got.file)
	}
}
