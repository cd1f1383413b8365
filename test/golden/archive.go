package golden

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Archives runs play on each txtar archive that matches a pattern, in a subtest with the name of
// the file. With -update it writes the archives that play has changed.
func Archives(t *testing.T, pattern string, play func(*testing.T, *txtar.Archive)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in %s: %v", pattern, err)
	}
	for _, path := range paths {
		path, err := filepath.Abs(path) // the test may go elsewhere
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { Archive(t, path, play) })
	}
}

// Archive runs play on one archive.
func Archive(t *testing.T, path string, play func(*testing.T, *txtar.Archive)) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	play(t, archive)
	if *update && !t.Failed() {
		write(t, path, string(txtar.Format(archive)))
	}
}

// Steps runs each file of an archive as a command, whose name is the command line and whose
// content is the expected output. If do returns false, the content is the input of the command.
func Steps(t testing.TB, archive *txtar.Archive, do func(words []string, text string) (got string, answers bool)) {
	t.Helper()
	for i := range archive.Files {
		step := &archive.Files[i]
		if got, answers := do(strings.Fields(step.Name), string(step.Data)); answers {
			hold(t, step, got)
		}
	}
}

// Answer compares a text with a file of an archive. With -update the file is created if it does
// not exist.
func Answer(t testing.TB, archive *txtar.Archive, name, got string) {
	t.Helper()
	file := find(archive, name)
	if file == nil {
		archive.Files = append(archive.Files, txtar.File{Name: name})
		file = &archive.Files[len(archive.Files)-1]
	}
	hold(t, file, got)
}

// Text returns a file of an archive; empty if it does not exist.
func Text(archive *txtar.Archive, name string) string {
	if file := find(archive, name); file != nil {
		return string(file.Data)
	}
	return ""
}

func find(archive *txtar.Archive, name string) *txtar.File {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			return &archive.Files[i]
		}
	}
	return nil
}

func hold(t testing.TB, file *txtar.File, got string) {
	t.Helper()
	if *update {
		file.Data = []byte(got)
		return
	}
	compare(t, file.Name, got, string(file.Data))
}
