package rollout

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// section returns the text of the documentation below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/rolling-out.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/rolling-out.md has no section %q", heading)
	}
	within, _, _ := strings.Cut(rest, "\n## ")
	return within
}

// examples matches example values in the documentation, where a message has the actual ones.
var examples = regexp.MustCompile(`\d+% of \d+ = \d+|\b[0-9]+\b|east, west|\beast\b|\bada\b|…`)

// Every reason for which a cluster waits in the scenes has a row in the documentation, and
// every row is such a reason.
func TestEveryReasonToWaitIsDocumented(t *testing.T) {
	rows := map[string]*regexp.Regexp{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section(t, "What waits, and why"), -1) {
		if strings.HasPrefix(m[1], "commit ") {
			continue // while a commit is being loaded, the plan waits and not the rollout
		}
		pattern := "^" + examples.ReplaceAllString(regexp.QuoteMeta(m[1]), ".+")
		rows[m[1]] = regexp.MustCompile(pattern)
	}
	used := map[string]bool{}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range archive.Files {
			for line := range strings.Lines(string(step.Data)) {
				_, message, waits := strings.Cut(strings.TrimSpace(line), " waits: ")
				if !waits {
					continue
				}
				documented := false
				for row, pattern := range rows {
					if pattern.MatchString(message) {
						used[row], documented = true, true
					}
				}
				if !documented {
					t.Errorf("%s: docs/rolling-out.md has no row for %q", file, message)
				}
			}
		}
	}
	for row := range rows {
		if !used[row] {
			t.Errorf("docs/rolling-out.md has a row for %q, and no cluster of the scenes waits for it", row)
		}
	}
}

// The documented percentages are those in the code.
func TestDocumentedSharesAreTrue(t *testing.T) {
	text, checked := section(t, "Budgets"), 0
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+)(?: to (\d+))? \| (\d+) \|$`).FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[1])
		last, err := strconv.Atoi(m[2])
		if err != nil {
			last = first
		}
		want, _ := strconv.Atoi(m[3])
		for target := first; target <= last; target++ {
			checked++
			if got := roundUp(defaultShare, target); got != want {
				t.Errorf("25%% of %d clusters is %d, and the documentation says %d", target, got, want)
			}
		}
	}
	if checked < 9 {
		t.Errorf("only %d shares were found in docs/rolling-out.md", checked)
	}
}
