package walk

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// A walk finds the manifests and kustomizations below the path, and reports what it cannot read
// unless it is ignored.
func TestWalk(t *testing.T) {
	const submodule = ": this is a submodule, which is never entered; commit its files, or list it in .gitfleetignore"
	const link = ": this is a symbolic link, which is never followed; commit the file itself, or list the link in .gitfleetignore"
	for name, test := range map[string]struct {
		path           string
		files          map[string]string // "link", "module" and "pipe" are modes
		manifests      string
		kustomizations string
		problems       []string
	}{
		"manifests by their names": {".", map[string]string{"a.yaml": "", "b.yml": "", "c.json": "", "d.txt": "", "e": "", "f.YAML": ""}, "a.yaml b.yml c.json", "", nil},
		"hidden files":             {".", map[string]string{".a.yaml": "", ".github/b.yaml": "", "c/.d.yaml": ""}, "", "", nil},
		"a path":                   {"apps", map[string]string{"a.yaml": "", "apps/b.yaml": "", "apps/c/d.yaml": ""}, "apps/b.yaml apps/c/d.yaml", "", nil},
		"a missing path":           {"apps/prod", map[string]string{"apps/b.yaml": ""}, "", "", []string{"apps/prod: the commit has no such directory; correct the path in the configuration, or the repository"}},
		"a path that is a file":    {"apps", map[string]string{"apps": ""}, "", "", []string{"apps: the commit has no such directory; correct the path in the configuration, or the repository"}},
		"a path that is a link":    {"apps/prod", map[string]string{"apps": "link"}, "", "", []string{"apps" + link}},
		"kustomizations":           {".", map[string]string{"a/kustomization.yaml": "", "b/Kustomization": "", "c/kustomization.yml": "", "a/d.yaml": ""}, "a/d.yaml", "a b c", nil},
		"two in one directory":     {".", map[string]string{"a/kustomization.yaml": "", "a/Kustomization": ""}, "", "a", []string{"a/Kustomization: the directory has also kustomization.yaml; keep one of them"}},
		"a chart":                  {".", map[string]string{"a/Chart.yaml": "", "a/templates/b.yaml": "", "c.yaml": ""}, "c.yaml", "", []string{"a/Chart.yaml: this is a Helm chart, which is rendered only if a HelmChart or a ClusterHelmChart refers to it; add one, or list the directory in .gitfleetignore"}},
		"ignored":                  {".", map[string]string{".gitfleetignore": "a/\n*.json\n", "a/b.yaml": "", "c.json": "", "d.yaml": "", "e/.gitfleetignore": "!f.json\n", "e/f.json": ""}, "d.yaml e/f.json", "", nil},
		"ignored above the path":   {"apps", map[string]string{".gitfleetignore": "b.yaml\n", "apps/b.yaml": "", "apps/c.yaml": ""}, "apps/c.yaml", "", nil},
		"an ignored kustomization": {".", map[string]string{".gitfleetignore": "a/kustomization.yaml\n", "a/kustomization.yaml": "", "a/b.yaml": ""}, "a/b.yaml", "", nil},
		"ignored links":            {".", map[string]string{".gitfleetignore": "a.yaml\nlib/\n", "a.yaml": "link", "lib": "module"}, "", "", nil},
		"an ignored chart":         {".", map[string]string{".gitfleetignore": "Chart.yaml\n", "a/Chart.yaml": "", "a/b.yaml": ""}, "a/b.yaml", "", nil},
		"links and submodules": {".", map[string]string{"a.yaml": "link", "b": "link", "c.md": "link", "d": "module", "e.md": "module", "f.sock": "pipe"}, "", "", []string{
			"a.yaml" + link, "b" + link, "c.md" + link + " (warning)", "d" + submodule, "e.md" + submodule,
			"f.sock: this is neither a file nor a directory; list it in .gitfleetignore",
		}},
		"names that are not UTF-8":                 {".", map[string]string{"a\xff.yaml": "", "b\xff.txt": ""}, "", "", []string{"a\ufffd.yaml: the name is not UTF-8; rename it, or list it in .gitfleetignore"}},
		"an ignore file that is a link":            {".", map[string]string{".gitfleetignore": "link", "a.yaml": ""}, "a.yaml", "", []string{".gitfleetignore: this is a symbolic link, which is never followed; commit the file itself"}},
		"one that is a link in a directory":        {".", map[string]string{".gitfleetignore": "*.json\n", "a/.gitfleetignore": "link", "a/b.yaml": "", "a/c.json": ""}, "a/b.yaml", "", []string{"a/.gitfleetignore" + link}},
		"one that is an ignored link":              {".", map[string]string{".gitfleetignore": "a/.gitfleetignore\n*.json\n", "a/.gitfleetignore": "link", "a/b.yaml": "", "a/c.json": ""}, "a/b.yaml", "", nil},
		"one that is an ignored link above a path": {"a/b", map[string]string{".gitfleetignore": "a/.gitfleetignore\n", "a/.gitfleetignore": "link", "a/b/c.yaml": ""}, "a/b/c.yaml", "", nil},
		"one that is an ignored file is read":      {".", map[string]string{".gitfleetignore": ".gitfleetignore\n", "a/.gitfleetignore": "*.json\n", "a/b.yaml": "", "a/c.json": ""}, "a/b.yaml", "", nil},
		"ones that are no files": {".", map[string]string{".gitfleetignore": "module", "a/.gitfleetignore/b": "", "c/.gitfleetignore": "pipe"}, "", "", []string{
			".gitfleetignore: an ignore file must be a regular file; rename it, or commit a file",
			"a/.gitfleetignore: an ignore file must be a regular file; rename it, or commit a file",
			"c/.gitfleetignore: an ignore file must be a regular file; rename it, or commit a file",
		}},
		"one that is an ignored directory": {".", map[string]string{".gitfleetignore": ".gitfleetignore/\n", "a/.gitfleetignore/b": "", "a/c.yaml": ""}, "a/c.yaml", "", nil},
		"an ignore file that is binary":    {".", map[string]string{".gitfleetignore": "a\x00", "a.yaml": ""}, "a.yaml", "", []string{".gitfleetignore: the file has NUL bytes: it is binary, or in an encoding other than UTF-8; save it as UTF-8, or list it in .gitfleetignore"}},
		"an ignore file that is large":     {".", map[string]string{".gitfleetignore": strings.Repeat("a\n", ignoreFileSize/2+1), "a.yaml": ""}, "a.yaml", "", []string{".gitfleetignore: it has more than 64 KiB of patterns; list directories instead of their files"}},
		"long paths": {".", map[string]string{strings.Repeat(strings.Repeat("a", 1400)+"/", 3) + "b.yaml": "", strings.Repeat(strings.Repeat("a", 1300)+"/", 3) + "b.yaml": ""},
			strings.Repeat(strings.Repeat("a", 1300)+"/", 3) + "b.yaml", "",
			[]string{strings.Repeat("a", 100) + "...: the path of the directory has 4202 bytes, and no system can check out more than 4096; shorten it"}},
		"deep directories": {".", map[string]string{"1/2/3/4/a.yaml": "", "1/2/3/b.yaml": ""}, "1/2/3/b.yaml", "", []string{"1/2/3/4: directories are nested deeper than 3 levels"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			modes := map[string]fs.FileMode{"link": fs.ModeSymlink, "module": fs.ModeIrregular, "pipe": fs.ModeNamedPipe}
			for name, text := range test.files {
				files[name] = &fstest.MapFile{Data: []byte(text), Mode: modes[text]}
			}
			limits := limit.Limits{Depth: 3}.WithDefaults()
			w := &walker{Options: Options{Limits: limits}, tree: tree.New(files, limits.FileSize)}
			if err := w.from(test.path); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(w.found.Manifests, " "); got != test.manifests {
				t.Errorf("manifests %q, want %q", got, test.manifests)
			}
			if got := strings.Join(w.found.Kustomizations, " "); got != test.kustomizations {
				t.Errorf("kustomizations %q, want %q", got, test.kustomizations)
			}
			var problems []string
			for _, p := range w.found.Problems {
				problems = append(problems, p.Marked())
			}
			if !slices.Equal(problems, test.problems) {
				t.Errorf("problems:\n  %s\nwant:\n  %s", strings.Join(problems, "\n  "), strings.Join(test.problems, "\n  "))
			}
		})
	}
}

// undocumented matches patterns for which Git does not do what its documentation says, or whose
// meaning is not documented: "**" next to anything but a slash, and a slash in a class.
var undocumented = regexp.MustCompile(`[^/]\*\*|\*\*[^/]|\[[!^]?\]?([^\]\\]|\\[^/])*\\?/`)

// For random ignore files, the ignored paths are the same as those of Git.
func TestIgnoreFilesMatchGit(t *testing.T) {
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
			if err := os.WriteFile(filepath.Join(dir, d+f), nil, 0o644); err != nil {
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
		limits := limit.Limits{}.WithDefaults()
		w := &walker{Options: Options{Limits: limits}, tree: tree.New(os.DirFS(dir), limits.FileSize)}
		if err := w.from("."); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(w.found.Manifests)
		if !slices.Equal(w.found.Manifests, want) {
			t.Fatalf("read %q, but git would have %q", w.found.Manifests, want)
		}
	})
}

// endedFiles cannot be read any more.
type endedFiles struct{ fstest.MapFS }

func (endedFiles) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Names are not compared with patterns without end, nor after the commit is not needed any more.
func TestComparisonsEnd(t *testing.T) {
	files := fstest.MapFS{tree.IgnoreFile: {Data: []byte("*.txt\n")}, "a.yaml": {}, "b.yaml": {}, "c.yaml": {}}
	limits := limit.Limits{}.WithDefaults()
	w := &walker{Options: Options{Limits: limits}, tree: tree.New(files, limits.FileSize), compared: maxCompared - 12}
	if err := w.from("."); err != nil || len(w.found.Problems) != 1 || !strings.HasPrefix(w.found.Problems[0].Marked(), "c.yaml: up to here comparing all names with the patterns of .gitfleetignore takes too long") {
		t.Errorf("%v, %v", w.found.Problems, err)
	}
	w = &walker{Options: Options{Limits: limits}, tree: tree.New(endedFiles{files}, limits.FileSize)}
	if err := w.from("."); !errors.Is(err, errEnded) {
		t.Errorf("not needed any more: %v", err)
	}
}
