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

	"github.com/gitfleet/gitfleet/gitsource/hub/cache"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// undocumented matches patterns for which Git does not do what its documentation says, or whose
// meaning is not documented: "**" next to anything but a slash, and a slash in a class.
var undocumented = regexp.MustCompile(`[^/]\*\*|\*\*[^/]|\[[!^]?\]?([^\]\\]|\\[^/])*\\?/`)

// For random ignore files, the ignored paths are the same as those of Git.
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
			if err := os.WriteFile(filepath.Join(dir, at, tree.IgnoreFile), []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := git("ls-files", "-z", "--others", "--exclude-per-directory="+tree.IgnoreFile)
		var want []string
		for _, name := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
			if filepath.Base(name) != tree.IgnoreFile && name != "" {
				want = append(want, name)
			}
		}
		limits := Limits{}.WithDefaults()
		w := &walk{limits: limits, tree: tree.New(os.DirFS(dir), limits.FileSize, cache.New[tree.Key, *tree.Listing]())}
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
