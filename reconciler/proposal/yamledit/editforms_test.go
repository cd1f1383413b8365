package yamledit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Values are found in every form in which YAML may have them, and no other character changes.
func TestFormsOfValues(t *testing.T) {
	const flow = "kind: X\nspec: {\n  a: [1, # one ]\n    2], 'k': 'it''s }', \"q\": \"a \\\" ]\", n: {}\n}\n"
	for name, test := range map[string]struct {
		text string
		edit FieldEdit
		want string
	}{
		"behind a comment in a flow list":    {flow, FieldEdit{Path: "/spec/a/1", Value: int64(3)}, strings.Replace(flow, "    2]", "    3]", 1)},
		"appended behind a comment":          {flow, FieldEdit{Path: "/spec/a/-", Value: int64(3)}, strings.Replace(flow, "    2]", "    2, 3]", 1)},
		"quotes with brackets":               {flow, FieldEdit{Path: "/spec/k", Value: "x"}, strings.Replace(flow, "'it''s }'", "'x'", 1)},
		"an escaped quote":                   {flow, FieldEdit{Path: "/spec/q", Value: "x"}, strings.Replace(flow, `"a \" ]"`, `"x"`, 1)},
		"an empty flow map":                  {flow, FieldEdit{Path: "/spec/n/b", Value: true}, strings.Replace(flow, "n: {}", "n: {b: true}", 1)},
		"removed from a flow over lines":     {flow, FieldEdit{Path: "/spec/k", Remove: true}, strings.Replace(flow, "'k': 'it''s }', ", "", 1)},
		"a list of maps in a flow":           {"kind: X\nspec: {a: 1}\n", FieldEdit{Path: "/spec/b", Value: []any{map[string]any{"c": "d"}}}, "kind: X\nspec: {a: 1, b: [{c: d}]}\n"},
		"a text block with more line breaks": {"kind: X\na: |\n  b\n", FieldEdit{Path: "/a", Value: "b\n\n"}, "kind: X\na: |+\n  b\n\n"},
		"no value before a comment":          {"kind: X\na: # none\nb: 1\n", FieldEdit{Path: "/a", Value: "x"}, "kind: X\na: x # none\nb: 1\n"},
		"a null":                             {"kind: X\na: null\n", FieldEdit{Path: "/a", Value: "x"}, "kind: X\na: x\n"},
		"a number in quotes":                 {"kind: X\na: '1'\n", FieldEdit{Path: "/a", Value: int64(2)}, "kind: X\na: 2\n"},
		"JSON on one line":                   {`{"kind":"X","a":{"b":[1,2]}}`, FieldEdit{Path: "/a/b/0", Remove: true}, `{"kind":"X","a":{"b":[2]}}`},
		"the key of a mapping is a number":   {"kind: X\na:\n  1: b\n", FieldEdit{Path: "/a/1", Value: "c"}, "kind: X\na:\n  1: c\n"},
		"a tab before a comment":             {"kind: X\na: b\t# c\n", FieldEdit{Path: "/a", Value: "d"}, "kind: X\na: d\t# c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(test.text), BeginningOn(1), []FieldEdit{test.edit})
			if err != nil || string(got) != test.want {
				t.Errorf("%v\n%q\nwant\n%q", err, got, test.want)
			}
		})
	}
}

// A position that the manifest does not have is refused, and so is a form that cannot be replaced.
func TestPositionsThatAreRefused(t *testing.T) {
	const text = "kind: X\nlist: [a, b]\nitems: &all\n- c\ncopy: *all\ntext: \"over\n  lines\"\nkey: 1\n"
	for name, test := range map[string]struct {
		edit FieldEdit
		want string
	}{
		"past the end":               {FieldEdit{Path: "/list/2", Value: "x"}, "line 2: /list/2: the list has 2 items in Git"},
		"before the beginning":       {FieldEdit{Path: "/list/-1", Value: "x"}, "line 2: /list/-1: the list has 2 items in Git"},
		"a name in a list":           {FieldEdit{Path: "/list/x", Value: "x"}, "line 2: /list/x: the list has 2 items in Git"},
		"below the next item":        {FieldEdit{Path: "/list/-/x", Value: "x"}, "line 2: /list/-/x: the list has 2 items in Git"},
		"below a missing key":        {FieldEdit{Path: "/none/x", Value: "x"}, "line 1: /none/x: it is not in the manifest"},
		"an anchor":                  {FieldEdit{Path: "/items/0", Value: "x"}, "line 4: /items/0: other fields take their value from it through the YAML anchor &all"},
		"an alias":                   {FieldEdit{Path: "/copy", Value: "x"}, "line 5: /copy: its value comes from the YAML anchor *all; edit that, or write the value here"},
		"below an alias":             {FieldEdit{Path: "/copy/0", Value: "x"}, "line 5: /copy/0: its value comes from the YAML anchor *all; edit that, or write the value here"},
		"quotes over several lines":  {FieldEdit{Path: "/text", Value: "x"}, "line 6: /text: its value spans several lines"},
		"removing what is not there": {FieldEdit{Path: "/none", Remove: true}, "line 1: /none: it is not in the manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := EditAll([]byte(text), BeginningOn(1), []FieldEdit{test.edit})
			if _, ok := errors.AsType[*FieldError](err); !ok || err.Error() != test.want {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := FirstDocument([]byte("# only a comment\n")); err == nil || err.Error() != "the file is empty" {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := ManifestAt([]byte("a: [\n"), 1); err == nil || !strings.HasPrefix(err.Error(), "no manifest begins on line 1: ") {
		t.Errorf("a file that is not YAML: %v", err)
	}
}

// scalars are values of single fields.
func scalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int64Range(-1000, 1000), func(n int64) any { return n }),
		rapid.Map(rapid.StringMatching(`[ -~]{0,12}`), func(text string) any { return text }),
	)
}

// manifests are maps of scalars, maps and lists.
func manifests(depth int) *rapid.Generator[map[string]any] {
	value := scalars()
	if depth > 0 {
		value = rapid.OneOf(value,
			rapid.Map(manifests(depth-1), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(scalars(), 1, 3), func(l []any) any { return l }))
	}
	return rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9]{0,5}`), value, 1, 4)
}

// leaves returns the JSON pointers of all scalars of a value.
func leaves(v any, at string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, leaves(v[key], at+"/"+key)...)
		}
	case []any:
		for i, item := range v {
			out = append(out, leaves(item, fmt.Sprintf("%s/%d", at, i))...)
		}
	default:
		out = []string{at}
	}
	return out
}

// Each scalar of a manifest in block style can be edited. That changes its line only, and editing it
// back gives the value that was there before.
func TestScalarsAreEditedInTheirLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manifest := manifests(2).Draw(t, "manifest")
		path := rapid.SampledFrom(leaves(manifest, "")).Draw(t, "path")
		text, err := Block(manifest)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := LookUp(Canonical(manifest), api.SplitPointer(path))
		value := scalars().Draw(t, "value")
		lines := strings.Split(text, "\n")
		for _, v := range []any{value, before} {
			edited, err := EditAll([]byte(text), BeginningOn(1), []FieldEdit{{Path: path, Value: v}})
			if err != nil {
				t.Fatalf("%s of\n%s\nto %#v: %v", path, text, v, err)
			}
			text = string(edited)
			now, differ := strings.Split(text, "\n"), 0
			if len(now) != len(lines) {
				t.Fatalf("%d lines, want %d:\n%s", len(now), len(lines), text)
			}
			for i := range now {
				if now[i] != lines[i] {
					differ++
				}
			}
			if differ > 1 {
				t.Fatalf("%d lines differ:\n%s", differ, text)
			}
		}
	})
}
