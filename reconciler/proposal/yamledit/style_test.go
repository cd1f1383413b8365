package yamledit

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/placement/api"
)

// values are what an edit may set.
func values() *rapid.Generator[any] {
	return rapid.OneOf(scalars(),
		rapid.Map(rapid.StringMatching(`[a-z]{1,4}( [a-z]{1,4}){0,3}(\n[a-z]{1,4}){0,2}\n?`), func(text string) any { return text }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), scalars(), 1, 3), func(m map[string]any) any { return m }),
		rapid.Map(rapid.SliceOfN(scalars(), 1, 3), func(l []any) any { return l }))
}

// Whatever edit is made in whatever layout, not a byte outside of the changed field differs: all lines before it and
// after it, line ends, the final newline and a byte order mark. A file in which each line ends in the same way keeps
// that, and its indentation.
func TestEditsKeepEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manifest := manifests(2).Draw(t, "manifest")
		manifest["text"], manifest["wrapped"], manifest["last"] = "a\nb", "one two three", map[string]any{"x": "y", "list": []any{"p", map[string]any{"q": "r", "s": "t"}}}
		style := layout{rapid.SampledFrom([]int{2, 3, 4}).Draw(t, "indent"), rapid.Bool().Draw(t, "compact")}
		text, err := style.block(manifest)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "wrapped: one two three", "wrapped: >- # wrapped\n  one\n  two\n  three", 1)
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			if rapid.IntRange(0, 9).Draw(t, "comment") == 0 && strings.HasSuffix(lines[i], ":\n") {
				lines[i] = strings.TrimSuffix(lines[i], "\n") + "  # a comment\n"
			}
		}
		text = "# The beginning.\n" + strings.Join(lines, "")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		if rapid.Bool().Draw(t, "no final newline") {
			text = strings.TrimSuffix(text, "\n")
		}
		text = strings.ReplaceAll(text, "\n", end)
		if rapid.Bool().Draw(t, "byte order mark") {
			text = string(byteOrderMark) + text
		}
		root, err := FirstDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := Value(root)
		if err != nil {
			t.Fatal(err)
		}
		e := FieldEdit{Path: rapid.SampledFrom(append(leaves(whole, ""), "/last", "/last/list", "/last/new", "/new", "/last/list/-")).Draw(t, "path")}
		if e.Remove = rapid.Bool().Draw(t, "remove") && !strings.HasSuffix(e.Path, "new") && !strings.HasSuffix(e.Path, "-"); !e.Remove {
			e.Value = values().Draw(t, "value")
		}
		f, err := find(root, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := EditAll([]byte(text), FirstDocument, []FieldEdit{e})
		if err != nil || string(edited) == text {
			return // an issue, or the value that it has
		}
		got := string(edited)
		if strings.HasSuffix(got, "\n") != strings.HasSuffix(text, "\n") && !strings.HasSuffix(fmt.Sprint(e.Value), "\n") {
			t.Fatalf("the final newline differs:\n%q\n%q", text, got)
		}
		if bytes.HasPrefix(edited, byteOrderMark) != strings.HasPrefix(text, string(byteOrderMark)) {
			t.Fatalf("the byte order mark differs:\n%q\n%q", text, got)
		}
		if n := strings.Count(got, "\r\n"); n != 0 && n != strings.Count(got, "\n") || strings.Count(got, "\r") != n || (n > 0) != (end == "\r\n") && strings.Contains(got, "\n") {
			t.Fatalf("line ends are mixed:\n%q\n%q", text, got)
		}
		// The lines outside of the field, or of the one around it if that becomes empty, are the same.
		before, after := strings.SplitAfter(text, "\n"), strings.SplitAfter(got, "\n")
		first, last := 0, 0
		for first < min(len(before), len(after)) && before[first] == after[first] {
			first++
		}
		for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
			last++
		}
		from, to := f.parent.Line, newSource([]byte(text)).count()
		if f.node != nil && !e.Remove {
			if from = f.node.Line; f.key != nil {
				from = f.key.Line
			}
			s := newSource(bytes.TrimPrefix([]byte(text), byteOrderMark))
			to = s.extent(f, f.key, f.node) - 1
		}
		if parent := api.SplitPointer(e.Path); e.Remove && len(parent) > 1 {
			from = min(from, f.parent.Line-1) // it may become empty
		}
		if first < len(before) && first+1 < from || f.node != nil && !e.Remove && len(before)-last > to+1 {
			t.Fatalf("lines %d to %d differ, and %s is in %d to %d:\n%s\n%s", first+1, len(before)-last, e.Path, from, to, text, got)
		}
	})
}

// A comment behind the key of a list or a map stays, and so do the header of a folded text and the lines of it that do
// not change.
func TestFormsThatStay(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		edit FieldEdit
		want string
	}{
		"a comment behind a key":      {"kind: X\nenv: # for all\n- a\n", FieldEdit{Path: "/env", Value: []any{"b", "c"}}, "kind: X\nenv: # for all\n- b\n- c\n"},
		"a folded text":               {"kind: X\na: >-  # long\n  one\n  two\n  three\nb: 1\n", FieldEdit{Path: "/a", Value: "one 2 three"}, "kind: X\na: >-  # long\n  one\n  2\n  three\nb: 1\n"},
		"a folded text with its end":  {"kind: X\na: >\n    one\n    two\n", FieldEdit{Path: "/a", Value: "one 2\n"}, "kind: X\na: >\n    one\n    2\n"},
		"an indentation indicator":    {"kind: X\na: |2-\n  one\n", FieldEdit{Path: "/a", Value: "two"}, "kind: X\na: |2-\n  two\n"},
		"what folding cannot express": {"kind: X\na: >-\n  one\n", FieldEdit{Path: "/a", Value: "two\n three"}, "kind: X\na: |-\n  two\n   three\n"},
		"four spaces":                 {"kind: X\nspec:\n    a:\n        b: c\n", FieldEdit{Path: "/spec/new", Value: map[string]any{"d": map[string]any{"e": "f"}}}, "kind: X\nspec:\n    a:\n        b: c\n    new:\n        d:\n            e: f\n"},
		"a list like its key":         {"kind: X\nlist:\n- a\nspec: {}\n", FieldEdit{Path: "/new", Value: []any{"b"}}, "kind: X\nlist:\n- a\nspec: {}\nnew:\n- b\n"},
		"CRLF":                        {"kind: X\r\na:\r\n  b: c\r\n", FieldEdit{Path: "/a", Value: map[string]any{"d": "e", "f": "g"}}, "kind: X\r\na:\r\n  d: e\r\n  f: g\r\n"},
		"CRLF in a text":              {"kind: X\r\na: |\r\n  b\r\n  c\r\n", FieldEdit{Path: "/a", Value: "b\nd\n"}, "kind: X\r\na: |\r\n  b\r\n  d\r\n"},
		"CRLF, no final newline":      {"kind: X\r\na: b\r\nc: d", FieldEdit{Path: "/c", Remove: true}, "kind: X\r\na: b"},
		"a text at the end":           {"kind: X\na: |-\n  b", FieldEdit{Path: "/a", Value: "c\nd"}, "kind: X\na: |-\n  c\n  d"},
		"a byte order mark":           {"\ufeffkind: X\na: b\n", FieldEdit{Path: "/kind", Value: "Z"}, "\ufeffkind: Z\na: b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(test.text), FirstDocument, []FieldEdit{test.edit})
			if err != nil || string(got) != test.want {
				t.Errorf("%v\n%q\nwant\n%q", err, got, test.want)
			}
		})
	}
	for name, text := range map[string]string{"CR": "kind: X\ra: b\r", "NEL": "kind: X\na: b\u0085", "LS": "kind: X # \u2028\na: b\n"} {
		if got, err := EditAll([]byte(text), FirstDocument, []FieldEdit{{Path: "/a", Value: "c"}}); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A document is removed with its lines only.
func TestRemovedDocumentsInOtherLayouts(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\r\n---\r\nb: 2\r\n---\r\nc: 3\r\n":       "a: 1\r\n---\r\nc: 3\r\n",
		"a: 1\n---\nx: 1\n---\nb: 2":                   "a: 1\n---\nb: 2",
		"\ufeffa: 1\r\n---\r\nb: 2\r\n---\r\nc: 3\r\n": "\ufeffa: 1\r\n---\r\nc: 3\r\n",
	} {
		if got, err := WithoutDocument([]byte(text), 3); err != nil || string(got) != want {
			t.Errorf("%v\n%q\nwant\n%q", err, got, want)
		}
	}
	if got, err := WithoutDocument([]byte("a: 1\n---\nb: 2"), 3); err != nil || string(got) != "a: 1" {
		t.Errorf("%v %q", err, got)
	}
}

// A value in which a reviewer would read another one is escaped in double quotes, in each form in which it is written,
// or no edit is made.
func TestInvisibleCharactersAreEscaped(t *testing.T) {
	const bidi, zero, tag = "a\u202eb\u2066", "a\u200bb", "a\U000e0041"
	for name, test := range map[string]struct {
		text string
		edit FieldEdit
		want string // empty if no edit is made
	}{
		"plain":            {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: bidi}, "kind: X\na: \"a\\u202Eb\\u2066\"\n"},
		"single-quoted":    {"kind: X\na: 'b'\n", FieldEdit{Path: "/a", Value: zero}, "kind: X\na: \"a\\u200Bb\"\n"},
		"a long one":       {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: tag}, "kind: X\na: \"a\\U000E0041\"\n"},
		"a C1 control":     {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: "a\u009bb"}, "kind: X\na: \"a\\u009Bb\"\n"},
		"a blank letter":   {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: "a\u3164"}, "kind: X\na: \"a\\u3164\"\n"},
		"a no-break":       {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: "a\u00a0b"}, "kind: X\na: \"a\\u00A0b\"\n"},
		"in a new map":     {"kind: X\na: b\n", FieldEdit{Path: "/c", Value: map[string]any{zero: bidi}}, "kind: X\na: b\nc:\n  \"a\\u200Bb\": \"a\\u202Eb\\u2066\"\n"},
		"a new key":        {"kind: X\na: b\n", FieldEdit{Path: "/" + zero, Value: "c"}, "kind: X\na: b\n\"a\\u200Bb\": c\n"},
		"in a flow":        {"kind: X\na: {b: c}\n", FieldEdit{Path: "/a/d", Value: []any{bidi}}, "kind: X\na: {b: c, d: [\"a\\u202Eb\\u2066\"]}\n"},
		"a key in a flow":  {"kind: X\na: {b: c}\n", FieldEdit{Path: "/a/" + zero, Value: "d"}, "kind: X\na: {b: c, \"a\\u200Bb\": d}\n"},
		"in JSON":          {`{"kind": "X", "a": {"b": "c"}}`, FieldEdit{Path: "/a/d", Value: map[string]any{"e": bidi}}, `{"kind": "X", "a": {"b": "c", "d": {"e":"a\u202Eb\u2066"}}}`},
		"in text":          {"kind: X\na: |\n  b\n", FieldEdit{Path: "/a", Value: "b\n" + zero + "\n"}, ""},
		"a line of a text": {"kind: X\na: |\n  b\n  " + zero + "\n", FieldEdit{Path: "/a", Value: "c\n" + zero + "\n"}, "kind: X\na: |\n  c\n  " + zero + "\n"},
		"other scripts":    {"kind: X\na: b\n", FieldEdit{Path: "/a", Value: "naïve 日本 שלום"}, "kind: X\na: naïve 日本 שלום\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditAll([]byte(test.text), FirstDocument, []FieldEdit{test.edit})
			if (err != nil) != (test.want == "") || string(got) != test.want {
				t.Errorf("%v\n%q\nwant\n%q", err, got, test.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.StringOfN(rapid.RuneFrom([]rune{'a', ' ', '\u200b', '\u202e', '\u2066', '\ufeff', '\u00ad', '\u2028', '\u0085', '\U000e0041', '\u3164', '"', '\\', '\n'}), 1, 6, -1).Draw(t, "text")
		e := FieldEdit{Path: rapid.SampledFrom([]string{"/a", "/b/c", "/d/e", "/f", "/new", "/b/new"}).Draw(t, "path"), Value: rapid.SampledFrom([]any{odd, []any{odd}, map[string]any{odd: odd}}).Draw(t, "value")}
		got, err := EditAll([]byte("a: x\nb: {c: y}\nd:\n  e: 'z'\nf: |\n  g\n"), FirstDocument, []FieldEdit{e})
		if err == nil && strings.ContainsFunc(string(got), func(r rune) bool { return r != '\n' && markdown.Invisible(r) }) {
			t.Fatalf("%q", got)
		}
	})
}
