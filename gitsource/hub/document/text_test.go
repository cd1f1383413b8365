package document

import (
	"slices"
	"strings"
	"testing"
)

// Each chunk has its text and the number of lines before it. Chunks without content are left
// out.
func TestSplit(t *testing.T) {
	type part struct {
		text   string
		before int
	}
	for text, want := range map[string][]part{
		"":                              nil,
		"a: 1":                          {{"a: 1", 0}},
		"a: 1\n---\nb: 2\n":             {{"a: 1\n", 0}, {"---\nb: 2\n", 1}},
		"---\na: 1\n---":                {{"---\na: 1\n", 0}},
		"---\n# only a comment\n---\n":  nil,
		"--- a: 1\n":                    {{"--- a: 1\n", 0}},
		"--- # a comment\n":             nil,
		"---\r\na: 1\r\n---\r\nb: 2":    {{"---\r\na: 1\r\n", 0}, {"---\r\nb: 2", 2}},
		"%YAML 1.2\n---\na: 1\n":        {{"---\na: 1\n", 1}},
		"a: 1\n...\nb: 2\n":             {{"a: 1\n...\nb: 2\n", 0}},
		"...\n\n  \n":                   nil,
		"----\n":                        {{"----\n", 0}},
		"a: |\n  ---\n  b\n":            {{"a: |\n  ---\n  b\n", 0}},
		"# comment\u2028a: 1\n":         {{"# comment\u2028a: 1\n", 0}}, // a line separator ends the comment
		"a: 1\n---\n---\n\n---\nb: 2\n": {{"a: 1\n", 0}, {"---\nb: 2\n", 4}},
	} {
		var got []part
		for _, c := range split([]byte(text)) {
			got = append(got, part{string(c.text), c.before})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is split into %v, want %v", text, got, want)
		}
	}
}

// Only UTF-8 text is read. The message says how to convert the file.
func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":                "",
		"\ufeffa: 1":          "",
		"\xff\xfea\x00":       "the file is UTF-16 or UTF-32; save it as UTF-8",
		"\xfe\xff\x00a":       "the file is UTF-16 or UTF-32; save it as UTF-8",
		"a\x00b":              "the file has NUL bytes: it is binary, or in an encoding other than UTF-8; save it as UTF-8, or list it in .gitfleetignore",
		"a: \xe4":             "the file is not UTF-8; save it as UTF-8",
		string(lfsHeader):     "this is a Git LFS pointer, not the file itself; store it in Git directly: git lfs untrack, then commit the file",
		"# " + "\xed\xa0\x80": "the file is not UTF-8; save it as UTF-8", // a surrogate
	} {
		plain, err := PlainText([]byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err == nil && string(plain) != strings.TrimPrefix(text, "\ufeff") {
			t.Errorf("%q: %q, %q; want %q", text, plain, got, want)
		}
	}
}

func TestIsManifest(t *testing.T) {
	for name, want := range map[string]bool{
		"a.yaml": true, "a/b.yml": true, "a.json": true, "a.YAML": false, "a.txt": false, "yaml": false, "a.yaml.bak": false, "Kustomization": false,
	} {
		if got := IsManifest(name); got != want {
			t.Errorf("%s may have manifests: %t, want %t", name, got, want)
		}
	}
}
