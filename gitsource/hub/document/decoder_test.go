package document

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// decodeNode decodes the first document of a YAML text with the given limits.
func decodeNode(t *testing.T, text string, limits limit.Limits, maxSize int64) (r *Report, value any, size int64, ok bool) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	r = &Report{Root: doc.Content[0], Limits: limits.WithDefaults()}
	value, size, ok = Decode(r, doc.Content[0], maxSize)
	return r, value, size, ok
}

// A document at a limit is decoded, and one above it is given up with one message.
func TestDecodeLimits(t *testing.T) {
	aliases := func(n int) string { return "a: &a [x, x]\nb: [" + strings.Repeat("*a, ", n) + "]\n" }
	merges := func(n int) string {
		return "a: &a {b: c, d: e, f: g}\nh:\n" + strings.Repeat("- <<: *a\n", n)
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, test := range map[string]struct {
		text   func(int) string
		n      int // the largest number that is decoded
		limits limit.Limits
		want   string
	}{
		// 8 nodes and 1 for each alias; each alias is expanded to 3 more
		"aliases": {aliases, 3, limit.Limits{AliasExpansion: 1}, "the YAML aliases of this document expand to more than 1 times its size; write it out, or split it"},
		"depth":   {nested, 5, limit.Limits{Depth: 5}, "nested deeper than 5 levels"},
		"depth in mappings": {func(n int) string { return strings.Repeat("{a: ", n) + "1" + strings.Repeat("}", n) }, 3, limit.Limits{Depth: 3},
			"nested deeper than 3 levels"},
		// 11 nodes, and 3 for each item; each merge is expanded to 4 more
		"merged mappings": {merges, 11, limit.Limits{AliasExpansion: 1}, "the YAML aliases of this document expand to more than 1 times its size"},
	} {
		t.Run(name, func(t *testing.T) {
			if d, _, _, ok := decodeNode(t, test.text(test.n), test.limits, math.MaxInt64); !ok || len(d.Problems) > 0 {
				t.Errorf("at the limit: %t, %v", ok, d.Problems.Err())
			}
			d, _, _, ok := decodeNode(t, test.text(test.n+1), test.limits, math.MaxInt64)
			if ok || len(d.Problems) != 1 || !strings.HasPrefix(d.Problems[0].Message, test.want) {
				t.Errorf("above the limit: %t, %v; want %q", ok, d.Problems.Err(), test.want)
			}
		})
	}
}

// Aliases are limited absolutely too: a document that is long itself must not become a hundred
// times longer.
func TestDecodeLimitsExpandedNodes(t *testing.T) {
	long := "a: &a [" + strings.Repeat("1,", 5000) + "]\nb: [" + strings.Repeat("*a,", expandedNodes/5000) + "]\n"
	d, _, _, ok := decodeNode(t, long, limit.Limits{}, math.MaxInt64)
	if ok || len(d.Problems) != 1 || !strings.HasPrefix(d.Problems[0].Message, "the YAML aliases of this document expand to more than") {
		t.Errorf("decoded: %t, %v", ok, d.Problems.Err())
	}
}

// The decoder stops where the budget is used up, without a problem: whoever set the budget
// reports it.
func TestDecodeStopsAtTheBudget(t *testing.T) {
	text := "a: [" + strings.Repeat("word, ", 1000) + "]\n"
	_, _, whole, ok := decodeNode(t, text, limit.Limits{}, math.MaxInt64)
	if !ok || whole < 1000*valueBytes {
		t.Fatalf("without a budget: %t, %d bytes", ok, whole)
	}
	for _, test := range []struct {
		budget int64
		cut    bool
	}{{whole, false}, {whole - 1, true}, {whole / 2, true}} {
		d, _, size, ok := decodeNode(t, text, limit.Limits{}, test.budget)
		if ok == test.cut || len(d.Problems) > 0 {
			t.Errorf("with a budget of %d of %d bytes: decoded %t, %v", test.budget, whole, ok, d.Problems.Err())
		}
		if size > whole || test.cut && size <= test.budget {
			t.Errorf("with a budget of %d of %d bytes: %d are counted", test.budget, whole, size)
		}
	}
}

// Merged mappings (<<) fill in what the mapping does not set, and only mappings can be merged.
func TestDecodeMerge(t *testing.T) {
	for text, want := range map[string]string{
		"{<<: {a: 1}}":                             `{"a":1}`,
		"{<<: {a: 1}, a: 2}":                       `{"a":2}`,
		"{a: 2, <<: {a: 1}}":                       `{"a":2}`,
		"{<<: [{a: 1}, {a: 2, b: 2}], c: 3}":       `{"a":1,"b":2,"c":3}`,
		"{x: &x {a: 1}, y: {<<: *x, b: 2}}":        `{"x":{"a":1},"y":{"a":1,"b":2}}`,
		"{x: &x [{a: 1}, {b: 2}], y: {<<: *x}}":    `{"x":[{"a":1},{"b":2}],"y":{"a":1,"b":2}}`,
		"{<<: {<<: {a: 1}, b: 2}}":                 `{"a":1,"b":2}`,
		`{"<<": {a: 1}}`:                           `{"\u003c\u003c":{"a":1}}`, // in quotes it is a key
		"{<<: 3}":                                  "only mappings can be merged with <<",
		"{<<: [{a: 1}, 3]}":                        "only mappings can be merged with <<",
		"{x: &x 3, y: {<<: *x}}":                   "y: only mappings can be merged with <<",
		"{a: 1, b: &b {c: 1, c: 2}, d: {<<: *b}}":  "b.c: this key is already set on line 1; remove one of them",
		"{metadata: {labels: {<<: {a: 1}, b: c}}}": `metadata.labels.a: label values are strings; write "1", with the quotes (warning)`,
	} {
		d, value, _, _ := decodeNode(t, text, limit.Limits{}, math.MaxInt64)
		got := ""
		if len(d.Problems) > 0 {
			got = strings.TrimPrefix(d.Problems[0].Marked(), ":1: ")
		} else if data, err := json.Marshal(value); err == nil {
			got = string(data)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Tags that change the type of a list or a mapping are refused.
func TestDecodeRefusesTags(t *testing.T) {
	for text, want := range map[string]string{
		"a: !!set {b, c}":        "a: the YAML tag !!set is not supported; write a plain mapping",
		"a: !!omap [{b: c}]":     "a: the YAML tag !!omap is not supported; write a plain list",
		"a: !Ref b":              "a: it begins with !, which makes it a YAML tag, and none is supported; write the plain value, in quotes if the ! is part of it",
		"a: !!seq [b]":           "",
		"a: !!map {b: c}":        "",
		"a: !!str 3":             "",
		"a: !!int x":             "a: this number cannot be read; put it in quotes if it is meant as text",
		"a: !!float x":           "a: JSON has no such number; put it in quotes if it is meant as text",
		"a: !!null ''":           "",
		"a: !!timestamp 2020":    "",
		"!!binary a: b":          `the key "a" is not a string; put it in quotes`,
		"a: {? {b: c} : d}":      "a: a key of this mapping is not a word but a list or a mapping; if this is a template, it must be rendered first",
		"{a: &k b, *k : c}":      "",
		"{a: &k [b], *k : c}":    "a key of this mapping is not a word but a list or a mapping; if this is a template, it must be rendered first",
		"{~: a}":                 `the key "~" is not a string; put it in quotes`,
		"{1.5: a}":               `the key "1.5" is not a string; put it in quotes`,
		"{2026-01-31: a, on: b}": "",
	} {
		d, _, _, _ := decodeNode(t, text, limit.Limits{}, math.MaxInt64)
		got := ""
		if len(d.Problems) > 0 {
			got = strings.TrimPrefix(d.Problems[0].Error(), ":1: ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A value of JSON is read as package unstructured reads it, in a JSON file and in a YAML file.
func TestJSONIsReadLikeAnAPIServerReadsIt(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab1 :-#'\"\\/\n\té😀{}[]<&*!%@`~,?|>"))).AsAny()
	scalar := rapid.OneOf(
		text, rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		rapid.SampledFrom([]any{0.5, -1.25, 1e-7, "yes", "null", "1", "", "=", "<<", "2026-01-31"}),
	)
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		key := rapid.StringMatching(`[a-z<=y/.-]{1,6}`)
		return rapid.OneOf(scalar, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(), rapid.MapOfN(key, value(depth-1), 0, 3).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(map[string]any{"value": value(3).Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := utiljson.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a.json", "a.yaml"} {
			values, problems := decode(name, string(data))
			if len(problems) > 0 || len(values) != 1 || !reflect.DeepEqual(values[0], any(want)) {
				t.Fatalf("%s: %s is read as %#v, %v", name, data, values, problems.Err())
			}
		}
	})
}

// A file with as many documents as allowed is read, and more are refused once, at the first of
// them.
func TestReadLimitsDocuments(t *testing.T) {
	limits := limit.Limits{Documents: 2}.WithDefaults()
	for _, test := range []struct {
		name, text, want string
		documents        int
	}{
		{"a.yaml", "a: 1\n---\na: 2\n", "", 2},
		{"a.yaml", "a: 1\n---\na: 2\n---\na: 3\n---\na: 4\n", "a.yaml:4: the file has more than 2 documents; split it", 2},
		{"a.yaml", "a: 1\n---\n# none\n---\n~\n---\na: 2\n", "", 2},
		{"a.json", "{} {}", "", 2},
		{"a.json", "{}\n{}\n{}\n{}", "a.json:3: the file has more than 2 documents; split it", 2},
		{"a.yaml", "a: [\n---\na: 2\n---\na: 3\n", "a.yaml:4: the file has more than 2 documents; split it", 1},
	} {
		documents := 0
		problems := Read(test.name, []byte(test.text), limits, math.MaxInt64, func(*Report, any) { documents++ }).Problems
		got := ""
		if len(problems) > 0 {
			got = problems[len(problems)-1].Error()
		}
		if got != test.want || documents != test.documents {
			t.Errorf("%q: %d documents and %v; want %d and %q", test.text, documents, problems.Err(), test.documents, test.want)
		}
	}
}

// Reading ends where the values take too much memory, without a problem.
func TestReadEnds(t *testing.T) {
	for name, text := range map[string]string{"a.yaml": "a: 1\n---\na: [2, 3]\n---\n a: 4\n", "a.json": "{\"a\": 1} {\"a\": [2, 3]} {\"a\": 4}"} {
		documents := 0
		file := Read(name, []byte(text), limit.Limits{}.WithDefaults(), 2*objectBytes, func(*Report, any) { documents++ })
		if documents != 1 || len(file.Problems) > 0 || !file.Cut || !file.GaveUp || file.End.Document != 2 {
			t.Errorf("%q: %d documents, %+v", text, documents, file)
		}
	}
}

// Each document of a file has its number and its line.
func TestReadFindsPositions(t *testing.T) {
	var got []Report
	file := Read("a.yaml", []byte("# first\na: 1\n---\nb: [\n---\n\nc: 3\n"), limit.Limits{}.WithDefaults(), math.MaxInt64, func(r *Report, _ any) { got = append(got, *r) })
	if len(got) != 2 || len(file.Problems) != 1 || file.Size == 0 || file.Cut || file.GaveUp || file.End != got[1].Origin {
		t.Fatalf("%+v", file)
	}
	for i, want := range []Report{{Origin: api.Origin{Path: "a.yaml", Document: 1, Line: 2}}, {Origin: api.Origin{Path: "a.yaml", Document: 3, Line: 7}, LinesBefore: 4}} {
		if got[i].Origin != want.Origin || got[i].LinesBefore != want.LinesBefore {
			t.Errorf("document %d: %+v after %d lines, want %+v after %d", i, got[i].Origin, got[i].LinesBefore, want.Origin, want.LinesBefore)
		}
	}
	if p := file.Problems[0]; p.Document != 2 || p.Severity != problem.Error {
		t.Errorf("problem %+v", p)
	}
}
