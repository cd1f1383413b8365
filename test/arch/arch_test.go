package arch

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/test/golden"
)

func TestTheHouseKeepsItsRules(t *testing.T) {
	broken, err := Check("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range broken {
		t.Error(v)
	}
}

// Every fixture is a small house; the last of its files says which rules it
// breaks, where and why.
func TestABrokenRuleIsNamed(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, scene *txtar.Archive) {
		t.Parallel()
		if last := scene.Files[len(scene.Files)-1].Name; last != "want" {
			t.Fatalf("the last file is %q, not %q", last, "want")
		}
		golden.Answer(t, scene, "want", strings.Join(told(t, build(t, scene)), ""))
	})
}

// A rule that nothing breaks may have stopped looking.
func TestEveryRuleIsBrokenByAFixture(t *testing.T) {
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

// What the document does not tell, nobody knows; what the table does not have,
// nobody checks.
func TestTheDocumentSaysWhoMayImportWhom(t *testing.T) {
	rows := map[string][]string{}
	for line := range strings.Lines(section(t, "Import rules")) {
		cells := strings.Split(line, "|")
		if len(cells) == 4 && strings.Contains(cells[1], "`") {
			for _, room := range words(cells[1]) {
				rows[room] = words(cells[2])
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(mayImport)) {
		if !slices.Equal(rows[room], mayImport[room]) {
			t.Errorf("%s may import %v, and the document says %v", room, mayImport[room], rows[room])
		}
		delete(rows, room)
	}
	for room := range rows {
		t.Errorf("the document has a row for %s, and the table has none", room)
	}
}

// The list of packages has all of them, and nothing that does not exist. A line names packages,
// the first with its whole path and the others with theirs from the same parent.
func TestTheDocumentListsThePackages(t *testing.T) {
	shown := map[string]bool{}
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
			shown[name] = true
			if last {
				break
			}
		}
	}
	for room := range mayImport {
		if _, err := os.Stat(filepath.Join("../..", room)); err == nil && !shown[room] {
			t.Errorf("the list of packages does not have %s", room)
		}
	}
}

// section returns a section of the document.
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

// words returns what stands in backquotes.
func words(cell string) []string {
	out := []string{}
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// build writes a house to a directory of its own.
func build(t *testing.T, scene *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module github.com/gitfleet/gitfleet\n\ngo 1.26.0\n")
	for _, f := range scene.Files[:len(scene.Files)-1] {
		// Fixtures must not break the rules that hold for this repository.
		content := strings.NewReplacer("{workplace}", "/wo"+"rk/", "{long}", strings.Repeat("\n", 500)).Replace(string(f.Data))
		write(t, filepath.Join(dir, filepath.FromSlash(f.Name)), content)
	}
	return dir
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

func told(t *testing.T, dir string) []string {
	t.Helper()
	broken, err := Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(broken))
	for i, v := range broken {
		out[i] = v.String() + "\n"
	}
	return out
}
