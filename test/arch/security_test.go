package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testName     = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// Each promise in docs/security.md names tests, and these exist.
func TestPromisesOfSecurityAreTested(t *testing.T) {
	exists := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(name)
		for _, m := range testFunction.FindAllSubmatch(raw, -1) {
			exists[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	promises, inTable := 0, false
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case cells[len(cells)-1] == "Tests |":
			inTable = true
		case inTable && !strings.HasPrefix(line, "|-"):
			promises++
			names := testName.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(names) == 0 {
				t.Errorf("no test: %s", line)
			}
			for _, n := range names {
				if !exists[n[1]] {
					t.Errorf("there is no %s: %s", n[1], line)
				}
			}
		}
	}
	if promises == 0 {
		t.Error("docs/security.md promises nothing")
	}
}
