package tree

import (
	"strings"
	"testing"
)

func TestIgnores(t *testing.T) {
	tests := []struct {
		patterns, name string
		dir, want      bool
	}{
		{"*.yaml", "a/b.yaml", false, true},
		{"/b.yaml", "a/b.yaml", false, false},
		{"a/", "a", true, true},
		{"a/", "a", false, false},
		{"a/*", "a/b/c.yaml", false, false},
		{"a/**", "a/b/c.yaml", false, true},
		{"a/**", "a", true, false},
		{"**/c.yaml", "a/b/c.yaml", false, true},
		{"a/**/c.yaml", "a/c.yaml", false, true},
		{"*.yaml\n!keep.yaml", "keep.yaml", false, false},
		{"!keep.yaml\n*.yaml", "keep.yaml", false, true},
		{`\#a`, "#a", false, true},
		{"#a", "#a", false, false},
		{`\!a`, "!a", false, true},
		{"a ", "a", false, true},
		{`a\ `, "a ", false, true},
		{"[a-c]x", "bx", false, true},
		{"[!a-c]x", "bx", false, false},
		{"[]]x", "]x", false, true},
		{`[\][ab]`, "b", false, true},
		{`[!\]]x`, "ax", false, true},
		{`[!\]]x`, "]x", false, false},
		{"[a", "[a", false, false},
		{"?[*", "ab", false, false},
		{"[^**/**", "-/b", false, false},
		{"[!]a]x", "bx", false, true},
		{"[!-a]", "B", false, true},
		{"[!-a]", "-", false, false},
		{"a[.-9]b", "a/b", false, false},
		{`[\a]x`, "ax", false, true},
		{"a?c", "a/c", false, false},
		{"a*c", "a/c", false, false},
		{"**", "a", false, true},
		{"a\r\n", "a", false, true},
		{`a\/b`, "a/b", false, true},
		{`a\\/b`, `a\/b`, false, true},
		{`\/a`, "a", false, false},
		{`a\/`, "a", true, false},
	}
	for _, test := range tests {
		ignored := (*Patterns)(nil).With(".", test.patterns)
		if got := ignored.Ignores(test.name, test.dir); got != test.want {
			t.Errorf("%q ignores %q: %t, want %t", test.patterns, test.name, got, test.want)
		}
	}
}

// No ignore file takes long or panics, and a pattern that the next line negates ignores
// nothing.
func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{"*.yaml\n!a", "a/**/b", "[a-z]*", `\#`, "**/**/**/**/a", "a***b", "[[]", "/", "!/", `\`, "[!]a]"} {
		f.Add(seed, "a/b.yaml", true)
	}
	f.Fuzz(func(t *testing.T, text, name string, dir bool) {
		if len(text) > 1000 || len(name) > 1000 {
			return
		}
		(*Patterns)(nil).With(".", text).Ignores(name, dir)
		line, _, _ := strings.Cut(text, "\n")
		line = strings.TrimRight(line, "\r")
		if line == "" || line[0] == '!' || line[0] == '#' {
			return
		}
		if (*Patterns)(nil).With(".", line+"\n!"+line).Ignores(name, dir) {
			t.Fatalf("%q is ignored by %q, although the next line negates it", name, line)
		}
	})
}

// An ignore file applies to its directory and everything below, and takes precedence over those
// above. The last pattern that matches decides.
func TestIgnoreFilesTakePrecedence(t *testing.T) {
	root := (*Patterns)(nil).With(".", "*.txt\n/app/secret.yaml\n!keep.txt\n")
	app := root.With("app", "!notes.txt\n/only.yaml\nkeep.txt\n")
	for _, test := range []struct {
		patterns *Patterns
		name     string
		want     bool
	}{
		{nil, "a.txt", false},
		{root, "a.txt", true},
		{root, "keep.txt", false},
		{root, "app/secret.yaml", true},
		{root, "secret.yaml", false},
		{app, "app/a.txt", true},           // by the file above
		{app, "app/notes.txt", false},      // included again
		{app, "app/deep/notes.txt", false}, // at every depth
		{app, "app/keep.txt", true},        // ignored again
		{app, "app/only.yaml", true},
		{app, "app/deep/only.yaml", false}, // only beside the ignore file
		{app, "app/secret.yaml", true},
	} {
		if got := test.patterns.Ignores(test.name, false); got != test.want {
			t.Errorf("%s is ignored: %t, want %t", test.name, got, test.want)
		}
	}
}
