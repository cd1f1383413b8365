package document

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

// decode decodes all documents of a file, as the hub does.
func decode(name, text string) (values []any, problems problem.List) {
	file := Read(name, []byte(text), limit.Limits{}.WithDefaults(), math.MaxInt64, func(_ *Report, value any) { values = append(values, value) })
	return values, file.Problems
}

// Scalars are read as kubectl reads them, and ambiguous ones are refused or warned of.
func TestDecodeScalars(t *testing.T) {
	for text, test := range map[string]struct {
		want any
		says string
	}{
		"word":                 {"word", ""},
		"'3'":                  {"3", ""},
		"3":                    {int64(3), ""},
		"-3":                   {int64(-3), ""},
		"+3":                   {int64(3), ""},
		"0644":                 {int64(420), ""},
		"0x10":                 {int64(16), ""},
		"1_000":                {int64(1000), ""},
		"2.0":                  {int64(2), ""},
		"1e2":                  {int64(100), ""},
		"0.5":                  {0.5, ""},
		"true":                 {true, ""},
		"~":                    {nil, ""},
		"2026-01-31":           {"2026-01-31", ""},
		"yes":                  {true, "a: kubectl reads this word as true, other tools as a string; write true, or put the word in quotes (warning)"},
		"'yes'":                {"yes", ""},
		".inf":                 {nil, "a: JSON has no such number; put it in quotes if it is meant as text"},
		"!secret x":            {nil, "a: it begins with !, which makes it a YAML tag, and none is supported; write the plain value, in quotes if the ! is part of it"},
		"!!binary aGk=":        {nil, "a: the YAML tag !!binary is not supported; write the plain value"},
		"!!bool y":             {true, ""},
		"!!bool off":           {false, ""},
		"off":                  {false, "a: kubectl reads this word as false, other tools as a string; write false, or put the word in quotes (warning)"},
		"y":                    {true, "a: kubectl reads this word as true, other tools as a string; write true, or put the word in quotes (warning)"},
		"yEs":                  {"yEs", ""},
		"+1.5e1":               {int64(15), ""},
		"1_0.5":                {10.5, ""},
		"0o17":                 {int64(15), ""},
		"0b11":                 {int64(3), ""},
		"-0":                   {int64(0), ""},
		"00":                   {int64(0), ""},
		"9223372036854775807":  {int64(math.MaxInt64), ""},
		"9223372036854775808":  {nil, "a: this number is too large to be kept exactly; put it in quotes if it is meant as text"},
		"089":                  {nil, "a: this number cannot be read; put it in quotes if it is meant as text"},
		".NaN":                 {nil, "a: JSON has no such number; put it in quotes if it is meant as text"},
		"1e400":                {"1e400", ""},
		"1e300":                {1e300, ""},
		"=":                    {"=", ""},
		"!!bool maybe":         {nil, "a: is tagged !!bool, but is not a boolean; write true or false"},
		"99999999999999999999": {nil, "a: this number is too large to be kept exactly; put it in quotes if it is meant as text"},
	} {
		values, problems := decode("", "a: "+text+"\n")
		var says string
		if len(problems) > 0 {
			says = strings.TrimPrefix(problems[0].Marked(), ":1: ")
		}
		if says != test.says {
			t.Errorf("%s: says %q, want %q", text, says, test.says)
		}
		if got := values[0].(map[string]any)["a"]; got != test.want {
			t.Errorf("%s is %#v, want %#v", text, got, test.want)
		}
	}
}

// deepList returns 1 in n lists.
func deepList(n int) (v any) {
	v = int64(1)
	for range n {
		v = []any{v}
	}
	return v
}

// JSON and YAML of the same documents are the same values.
func TestDecodeDocuments(t *testing.T) {
	object := func(v any) []any { return []any{map[string]any{"a": v}} }
	for name, test := range map[string]struct {
		file, text string
		want       []any
	}{
		"YAML":              {"a.yaml", "a: [1, x]\n", object([]any{int64(1), "x"})},
		"JSON":              {"a.json", `{"a": [1, "x"]}`, object([]any{int64(1), "x"})},
		"JSON in YAML":      {"a.yaml", "{\"a\": \"\\ud83d\\ude00\"}\n", object("😀")},
		"deep JSON":         {"a.json", `{"a": ` + strings.Repeat("[", 99) + "1" + strings.Repeat("]", 99) + "}", object(deepList(99))},
		"surrogate pairs":   {"a.json", `{"a": "\ud83d\ude00\t"}`, object("😀\t")},
		"numbers":           {"a.json", `{"a": [1.5, 1e2, true, null]}`, object([]any{1.5, int64(100), true, nil})},
		"several":           {"a.yaml", "a: 1\n---\n---\n# nothing\n---\na: 2\n", append(object(int64(1)), object(int64(2))...)},
		"several in JSON":   {"a.json", "{\"a\": 1}\n{\"a\": 2}", append(object(int64(1)), object(int64(2))...)},
		"aliases":           {"a.yaml", "a: [&x {b: c}, *x]\n", object([]any{map[string]any{"b": "c"}, map[string]any{"b": "c"}})},
		"merged mappings":   {"a.yaml", "a: {<<: [{b: 1, c: 1}, {b: 2}], c: 3}\n", object(map[string]any{"b": int64(1), "c": int64(3)})},
		"a number as a key": {"a.yaml", "a: {1: x}\n", object(map[string]any{"1": "x"})},
		"nothing":           {"a.yaml", "# only a comment\n", nil},
		"a byte order mark": {"a.yaml", "\ufeffa: 1\n", object(int64(1))},
	} {
		t.Run(name, func(t *testing.T) {
			values, problems := decode(test.file, test.text)
			if len(problems) > 0 || !reflect.DeepEqual(values, test.want) {
				t.Errorf("values %#v, want %#v; %v", values, test.want, problems.Err())
			}
		})
	}
}

// What cannot be read is reported with its line and the usual cause, and never with a value.
func TestReadReportsCause(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"a tab":             {"a.yaml", "a:\n\tb: c\n", "a.yaml:2: not valid YAML: found character that cannot start any token; YAML is indented with spaces, and this line has a tab"},
		"a template":        {"a.yaml", "a: 1\n{{ if .x }}\nb: 2\n", "this looks like a template: render it first, or list the file in .gitfleetignore"},
		"a no-break space":  {"a.yaml", "a: 1\nb:\u00a02\n", "this line has a no-break space (U+00A0) in place of a space"},
		"a template first":  {"a.yaml", "{{ if .x }}\nb: 2\n", "a.yaml:1: "},
		"a conflict first":  {"a.yaml", "<<<<<<< ours\na: [\n", "this is a merge conflict that was committed"},
		"a merge conflict":  {"a.yaml", "a: 1\n<<<<<<< ours\nb: 2\n", "this is a merge conflict that was committed"},
		"an open quote":     {"a.yaml", "a: \"b\n", "a quote or a bracket is not closed"},
		"an unknown alias":  {"a.yaml", "a: *hunter2\n", "a.yaml:1: not valid YAML: an alias has no anchor; put a value that begins with * in quotes"},
		"a repeated key":    {"a.yaml", "a: 1\nb: 2\na: 3\n", "a.yaml:3: a: this key is already set on line 1; remove one of them"},
		"a list as a key":   {"a.yaml", "[a]: 1\n", "a key of this mapping is not a word but a list or a mapping; if this is a template, it must be rendered first"},
		"a boolean key":     {"a.yaml", "true: 1\n", `the key "true" is not a string; put it in quotes`},
		"an empty key":      {"a.yaml", "'': 1\n", "a key of this mapping is empty; give it a name"},
		"a key with octals": {"a.yaml", "007: 1\n", `the key "007" is a number; put it in quotes`},
		"a cycle of merges": {"a.yaml", "a: &x\n- <<: *x\n", `a.yaml:2: a[0]: the YAML anchor "x" contains itself`},
		"a cycle":           {"a.yaml", "a: &x [*x]\n", `a.yaml:1: a[0][0]: the YAML anchor "x" contains itself`},
		"open JSON":         {"a.json", "{\"a\":\n[1,", "a.json:2: not valid JSON: the file ends in the middle of a value"},
		"wrong JSON":        {"a.json", "{\"a\":\n\nhunter2}", "a.json:3: not valid JSON: invalid character 'h' looking for beginning of value"},
		"two commas":        {"a.json", "[1,,\n2]", "a.json:1: not valid JSON: invalid character ',' looking for beginning of value"},
		"two colons":        {"a.json", "{\"a\"\n\n:\n\n:1}", "a.json:5: not valid JSON: invalid character ':' looking for beginning of value"},
		"no comma":          {"a.json", "[1\n\n2]", "a.json:3: not valid JSON: invalid character '2' after array element"},
		"deep JSON":         {"a.json", "\n" + strings.Repeat("[", 102) + "\n\n1", "a.json:2: not valid JSON: nested deeper than 100 levels"},
		"a large number":    {"a.json", "{\"a\": 1e400}", "a.json:1: a: JSON has no such number; put it in quotes if it is meant as text"},
		"a bare document":   {"a.yaml", "a: 1\n...\nb: 2\n...\nc: 3\n", "a.yaml:2: not valid YAML: did not find expected <document start>"},
		"UTF-16":            {"a.yaml", "\xff\xfea\x00", "the file is UTF-16 or UTF-32; save it as UTF-8"},
		"a binary file":     {"a.yaml", "a\x00b", "the file has NUL bytes"},
		"Latin 1":           {"a.yaml", "a: \xe4\n", "the file is not UTF-8; save it as UTF-8"},
		"a Git LFS pointer": {"a.yaml", "version https://git-lfs.github.com/spec/v1\n", "this is a Git LFS pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := decode(test.file, test.text)
			if len(problems) == 0 || !strings.Contains(problems[0].Error(), test.want) || strings.Contains(problems[0].Error(), "hunter2") {
				t.Errorf("says %v, want %q", problems.Err(), test.want)
			}
		})
	}
}

// An invalid document does not hide the next one.
func TestInvalidDocumentHidesNoOther(t *testing.T) {
	values, problems := decode("a.yaml", "a: 1\n---\nb: [\n---\nc: 3\n")
	if len(values) != 2 || len(problems) != 1 {
		t.Errorf("values %v, problems %v", values, problems.Err())
	}
}

// The values of labels are strings, however they are written.
func TestLabelsAreStrings(t *testing.T) {
	const own = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\n"
	for text, warnings := range map[string]int{
		"metadata: {labels: {a: 1}}\n":                                     1,
		"metadata: {labels: {a: yes}}\n":                                   1,
		"metadata: {labels: {a: b}}\n":                                     0,
		"items: [{metadata: {labels: {a: 1}}}]\n":                          1,
		"spec: {metadata: {labels: {a: 1}}}\n":                             0, // of another object
		"spec: {a: {metadata: {labels: {a: 1}}}}\n":                        0,
		"spec: {selector: {matchLabels: {a: 1}}}\n":                        0,
		own + "spec: {selector: {matchLabels: {a: 1}}}\n":                  1,
		"items: [{" + strings.TrimSpace(own) + ", matchLabels: {a: 1}}]\n": 1,
	} {
		if _, problems := decode("", text); len(problems) != warnings {
			t.Errorf("%q has %d warnings, want %d: %v", text, len(problems), warnings, problems.Err())
		}
	}
}
