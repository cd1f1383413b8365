package golden

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Book is an archive with the outputs of one command, each with a name.
type Book struct {
	archive *txtar.Archive
	checked map[string]bool
}

// Open opens a book, which need not exist with -update. When the test ends, the book must have no output that was not compared,
// unless only some subtests were run; with -update it is written, without the outputs that were not compared unless only some
// subtests were run.
func Open(t *testing.T, path string) *Book {
	t.Helper()
	path, err := filepath.Abs(path) // the test may go elsewhere
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{&txtar.Archive{}, map[string]bool{}}
	switch text, err := os.ReadFile(path); {
	case err == nil:
		b.archive = txtar.Parse(text)
	case !*update:
		t.Fatalf("%v; go test -update writes it", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			b.archive.Files = slices.DeleteFunc(b.archive.Files, func(f txtar.File) bool {
				if !b.checked[f.Name] && !*update {
					t.Errorf("%s has the output %s, which nothing is compared with; go test -update removes it", path, f.Name)
				}
				return !b.checked[f.Name]
			})
		}
		if *update {
			slices.SortFunc(b.archive.Files, func(a, b txtar.File) int { return strings.Compare(a.Name, b.Name) })
			write(t, path, string(txtar.Format(b.archive)))
		}
	})
	return b
}

// Compare compares an output, which need not end with a line feed, with that of a name in the book.
func (b *Book) Compare(t testing.TB, name, got string) {
	t.Helper()
	b.checked[name] = true
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	Answer(t, b.archive, name, got)
}
