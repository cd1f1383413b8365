package arch

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/test/golden"
)

var readSource = sync.OnceValues(func() (*tree, error) { return read("../..") })

// source returns the source code of this repository.
func source(t *testing.T) *tree {
	t.Helper()
	tree, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestSourceFollowsTheRules(t *testing.T) {
	for _, v := range source(t).violations() {
		t.Error(v)
	}
}

// Each archive has the files of a small module and, as its last file, the expected violations.
func TestViolationsAreReported(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		t.Parallel()
		if last := archive.Files[len(archive.Files)-1].Name; last != "want" {
			t.Fatalf("the last file is %q, not %q", last, "want")
		}
		violations, err := Check(writeModule(t, archive))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, v := range violations {
			got.WriteString(v.String() + "\n")
		}
		golden.Answer(t, archive, "want", got.String())
	})
}

func TestEachRuleHasAFixtureThatBreaksIt(t *testing.T) {
	for _, r := range rules {
		path := filepath.Join("testdata", r.name+".txtar")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		_, want, _ := strings.Cut(string(raw), "-- want --\n")
		if !strings.Contains(want, "["+r.name+"]\n") {
			t.Errorf("%s does not break the rule", path)
		}
	}
}

// A permission that no package uses would allow what nobody has decided.
func TestAllowedImportsAreUsed(t *testing.T) {
	imports := map[string]map[string]bool{} // by package, without those of its tests
	source := source(t)
	for _, f := range source.files {
		if f.product() {
			if imports[f.pkg] == nil {
				imports[f.pkg] = map[string]bool{}
			}
			for _, i := range f.imports {
				imports[f.pkg][i.path] = true
			}
		}
	}
	for pkg, allowed := range mayImport {
		if imports[pkg] == nil {
			t.Errorf("test/arch/packages.go: %s does not exist", pkg)
		}
		for _, i := range allowed {
			if !under(pkg, "cmd") && !imports[pkg][source.module+"/"+i] {
				t.Errorf("test/arch/packages.go: %s may import %s and does not: remove it", pkg, i)
			}
		}
	}
	for n, rule := range libraryRules {
		for _, pattern := range rule.packages {
			used := false
			for pkg, all := range imports {
				for i := range all {
					first := slices.IndexFunc(libraryRules, func(r libraryRule) bool { return under(i, r.libraries...) })
					used = used || first == n && (&file{pkg: pkg}).in(pattern)
				}
			}
			if !used {
				t.Errorf("test/arch/libraries.go: %s may import %v and does not: remove it", pattern, rule.libraries)
			}
		}
	}
}

// An exception is removed as soon as its type meets the general limit, or else the type could grow back unnoticed.
func TestLargeTypesAreLarge(t *testing.T) {
	_, reached := methodSets(source(t))
	for at, most := range largeTypes {
		if n := len(reached[at]); n <= maxMethods || n <= most-5 {
			t.Errorf("test/arch/size.go: type %s of %s reaches %d methods: its limit of %d is to be lower", at.name, at.pkg, n, most)
		}
	}
}

// The list of packages in docs/architecture.md is complete. A line may name several
// packages, separated by commas: the first by its whole path, each other one relative to the parent
// directory of the first.
func TestDocumentListsThePackages(t *testing.T) {
	listed := map[string]bool{}
	_, list, _ := strings.Cut(section(t, "Packages"), "```\n")
	list, _, _ = strings.Cut(list, "```\n")
	for line := range strings.Lines(list) {
		var parent string
		for i, name := range strings.Fields(strings.TrimSpace(line)) {
			last := !strings.HasSuffix(name, ",")
			name = strings.TrimSuffix(name, ",")
			if i == 0 {
				parent = path.Dir(name)
			} else {
				name = path.Join(parent, name)
			}
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Error(err)
			}
			listed[name] = true
			if last {
				break
			}
		}
	}
	for pkg := range mayImport {
		if !listed[pkg] {
			t.Errorf("the list of packages in docs/architecture.md does not have %s", pkg)
		}
	}
}

// section returns a section of docs/architecture.md.
func section(t *testing.T, title string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/architecture.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// writeModule writes the files of an archive, except the last, to a module in a directory of its own.
func writeModule(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module github.com/gitfleet/gitfleet\n\ngo 1.26.0\n")
	for _, f := range archive.Files[:len(archive.Files)-1] {
		// The fixtures themselves must not break the rules.
		content := strings.NewReplacer("{local}", "/wo"+"rk/", "{long}", strings.Repeat("\n", 500), "{methods}", methods(41)).Replace(string(f.Data))
		write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), content)
	}
	return dir
}

// methods returns n methods of a type T.
func methods(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "func (t *T) m%d() {}\n", i)
	}
	return b.String()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
