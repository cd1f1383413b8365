package hub

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		ignored := (*ignorer)(nil).with(".", test.patterns)
		if got := ignored.ignores(test.name, test.dir); got != test.want {
			t.Errorf("%q ignores %q: %t, want %t", test.patterns, test.name, got, test.want)
		}
	}
}

// undocumented is what Git does other than it says, or does not speak of: "**"
// next to something else than a slash, and a slash in a class.
var undocumented = regexp.MustCompile(`[^/]\*\*|\*\*[^/]|\[[!^]?\]?([^\]\\]|\\[^/])*\\?/`)

// Git itself is asked what random ignore files mean.
func TestIgnoreFilesMeanWhatGitSays(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	for _, d := range []string{"", "a/", "b/", "a/b/", "a/b/a/", "ab/", "b/ab/", "#x/"} {
		for _, f := range []string{"a.yaml", "b.yaml", "ab.yaml", "a b.yaml", "x[1].yaml", "!a.yaml", `a\b.yaml`} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, d+f), []byte(namespace("a")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	pattern := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b", "ab", ".yaml", "*", "**", "/", "?", "[ab]", "[!a]", "[a-b]", "[^b]", "[", "]", "[]a]", "!", "#", `\`, " ", "x", "[[]1]",
	}), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		for _, at := range []string{"", "a"} {
			var text strings.Builder
			for range rapid.IntRange(0, 4).Draw(t, "lines") {
				line := strings.Join(pattern.Draw(t, "pattern"), "")
				if !undocumented.MatchString(line) {
					text.WriteString(line + "\n")
				}
			}
			if err := os.WriteFile(filepath.Join(dir, at, IgnoreFile), []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := git("ls-files", "-z", "--others", "--exclude-per-directory="+IgnoreFile)
		var want []string
		for _, name := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
			if filepath.Base(name) != IgnoreFile && name != "" {
				want = append(want, name)
			}
		}
		limits := Limits{}.withDefaults()
		w := &walk{limits: limits, tree: newTree(os.DirFS(dir), limits, newCache[dirKey, *listing]())}
		if err := w.from("."); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(w.manifests)
		if !slices.Equal(w.manifests, want) {
			t.Fatalf("read %q, but git would have %q", w.manifests, want)
		}
	})
}
