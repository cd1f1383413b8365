// Package golden holds tests to what files of testdata expect of them. With
// go test -update the files are rewritten to what is so now; look at what changed
// before you commit it.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the files of testdata expect")

// File compares a text with a file. With -update it writes the file and creates its directory.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	compare(t, path, got, string(want))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s expects something else; go test -update takes over what is so now\n%s\nit is now:\n%s", what, firstDifference(got, want), got)
	}
}

// firstDifference returns the first line that differs between two texts.
func firstDifference(got, want string) string {
	is, should := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(is), len(should)) {
		if a, b := line(is, i), line(should, i); a != b {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, a, b)
		}
	}
	return "no difference"
}

// line returns a quoted line, or says that it does not exist.
func line(lines []string, i int) string {
	if i >= len(lines) {
		return "nothing more"
	}
	return fmt.Sprintf("%q", lines[i])
}
