// Package golden compares the output of tests with files, mostly in testdata. go test -update writes
// the present output to the files; review the difference before you commit it.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the present output to the golden files")

// File compares a text with a file. With -update it writes the file and creates its directory,
// unless the test has failed.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if !t.Failed() {
			write(t, path, got)
		}
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
		t.Errorf("%s differs; go test -update rewrites it\n%s\ngot:\n%s", what, firstDifference(got, want), got)
	}
}

// firstDifference returns the first line that differs between two texts.
func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if a, b := line(gotLines, i), line(wantLines, i); a != b {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, a, b)
		}
	}
	return "no difference"
}

// line returns a quoted line, or says that it does not exist.
func line(lines []string, i int) string {
	if i >= len(lines) {
		return "no such line"
	}
	return fmt.Sprintf("%q", lines[i])
}
