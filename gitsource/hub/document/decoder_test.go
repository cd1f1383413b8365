package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// decodeNode decodes the first document of a YAML text with the given limits and budget.
func decodeNode(t *testing.T, text string, limits limit.Limits, budget *limit.Budget) (*Decoder, any, bool) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	d := &Decoder{Report: &Report{Root: doc.Content[0], Limits: limits.WithDefaults()}, Budget: budget}
	value, ok := d.Decode(doc.Content[0])
	return d, value, ok
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
			if d, _, ok := decodeNode(t, test.text(test.n), test.limits, nil); !ok || len(d.Report.Problems) > 0 {
				t.Errorf("at the limit: %t, %v", ok, d.Report.Problems.Err())
			}
			d, _, ok := decodeNode(t, test.text(test.n+1), test.limits, nil)
			if ok || len(d.Report.Problems) != 1 || !strings.HasPrefix(d.Report.Problems[0].Message, test.want) {
				t.Errorf("above the limit: %t, %v; want %q", ok, d.Report.Problems.Err(), test.want)
			}
		})
	}
}

// Aliases are limited absolutely too: a document that is long itself must not become a hundred
// times longer.
func TestDecodeLimitsExpandedNodes(t *testing.T) {
	long := "a: &a [" + strings.Repeat("1,", 5000) + "]\nb: [" + strings.Repeat("*a,", expandedNodes/5000) + "]\n"
	d, _, ok := decodeNode(t, long, limit.Limits{}, nil)
	if ok || len(d.Report.Problems) != 1 || !strings.HasPrefix(d.Report.Problems[0].Message, "the YAML aliases of this document expand to more than") {
		t.Errorf("decoded: %t, %v", ok, d.Report.Problems.Err())
	}
}

// The decoder stops where the budget is used up, without a problem: whoever set the budget
// reports it.
func TestDecodeStopsAtTheBudget(t *testing.T) {
	text := "a: [" + strings.Repeat("word, ", 1000) + "]\n"
	whole, _, ok := decodeNode(t, text, limit.Limits{}, nil)
	if !ok || whole.Cut || whole.Size < 1000*valueBytes {
		t.Fatalf("without a budget: %t, %+v", ok, whole)
	}
	for _, test := range []struct {
		budget int64
		cut    bool
	}{{whole.Size, false}, {whole.Size - 1, true}, {whole.Size / 2, true}} {
		d, _, ok := decodeNode(t, text, limit.Limits{}, &limit.Budget{Limit: test.budget})
		if ok == test.cut || d.Cut != test.cut || len(d.Report.Problems) > 0 {
			t.Errorf("with a budget of %d of %d bytes: decoded %t, cut %t, %v", test.budget, whole.Size, ok, d.Cut, d.Report.Problems.Err())
		}
		if d.Size > whole.Size || test.cut && d.Size <= test.budget {
			t.Errorf("with a budget of %d of %d bytes: %d are counted", test.budget, whole.Size, d.Size)
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
		d, value, _ := decodeNode(t, text, limit.Limits{}, nil)
		got := ""
		if len(d.Report.Problems) > 0 {
			got = strings.TrimPrefix(d.Report.Problems[0].Marked(), ":1: ")
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
		d, _, _ := decodeNode(t, text, limit.Limits{}, nil)
		got := ""
		if len(d.Report.Problems) > 0 {
			got = strings.TrimPrefix(d.Report.Problems[0].Error(), ":1: ")
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

// An interner stores a limited number of short strings.
func TestInternerIsBounded(t *testing.T) {
	v := Interner{}
	for i := range maxInterned + 10 {
		v.intern(fmt.Sprint("word", i))
	}
	long := strings.Repeat("a", maxInternedSize+1)
	if v.intern(long) != long || len(v) != maxInterned {
		t.Errorf("%d words are stored, want %d", len(v), maxInterned)
	}
	if _, stored := v[long]; stored {
		t.Error("a long word is stored")
	}
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
		problems := Read(test.name, []byte(test.text), limits, func(*Report, *yaml.Node) bool { documents++; return true })
		got := ""
		if len(problems) > 0 {
			got = problems[len(problems)-1].Error()
		}
		if got != test.want || documents != test.documents {
			t.Errorf("%q: %d documents and %v; want %d and %q", test.text, documents, problems.Err(), test.documents, test.want)
		}
	}
}

// Reading ends when the caller has enough.
func TestReadEnds(t *testing.T) {
	for name, text := range map[string]string{"a.yaml": "a: 1\n---\na: 2\n", "a.json": "{} {} {}"} {
		documents := 0
		problems := Read(name, []byte(text), limit.Limits{}.WithDefaults(), func(*Report, *yaml.Node) bool { documents++; return false })
		if documents != 1 || len(problems) > 0 {
			t.Errorf("%q: %d documents, %v", text, documents, problems.Err())
		}
	}
}

// Each document of a file has its number and its line.
func TestParse(t *testing.T) {
	parsed := Parse("a.yaml", []byte("# first\na: 1\n---\nb: [\n---\n\nc: 3\n"), limit.Limits{}.WithDefaults(), nil)
	if len(parsed.Documents) != 2 || len(parsed.Problems) != 1 || parsed.Size == 0 {
		t.Fatalf("%+v", parsed)
	}
	for i, want := range []Document{{Number: 1, LinesBefore: 0}, {Number: 3, LinesBefore: 4}} {
		got := parsed.Documents[i]
		if got.Number != want.Number || got.LinesBefore != want.LinesBefore {
			t.Errorf("document %d: number %d after %d lines, want %d after %d", i, got.Number, got.LinesBefore, want.Number, want.LinesBefore)
		}
	}
	if p := parsed.Problems[0]; p.Document != 2 || p.Severity != problem.Error {
		t.Errorf("problem %+v", p)
	}
	cut := Parse("a.yaml", []byte("a: [1, 2, 3]\n---\nb: 1\n"), limit.Limits{}.WithDefaults(), &limit.Budget{Limit: 100})
	if len(cut.Documents) != 1 || cut.Problems.HasErrors() {
		t.Errorf("above the budget: %d documents, %v", len(cut.Documents), cut.Problems.Err())
	}
}
