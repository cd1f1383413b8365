package hub

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gitfleet/gitfleet/test/golden"
)

// The examples load without problems, read from the working tree as a user would.
func TestExamples(t *testing.T) {
	for _, name := range []string{"quickstart", "staged", "broken-syntax", "broken-fields", "broken-duplicates"} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := load(Commit{Hash: "c0ffee"}, os.DirFS(filepath.Join("../../examples", name)), Options{})
			golden.File(t, filepath.Join("testdata/examples", name+".txt"), describe(snapshot, err))
		})
	}
}

func TestQuickstartHasNoWarnings(t *testing.T) {
	snapshot, err := load(Commit{}, os.DirFS("../../examples/quickstart"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(snapshot.Warnings) > 0 {
		t.Error(snapshot.Warnings.Err())
	}
	if len(snapshot.Clusters) != 3 || len(snapshot.Placements) != 3 {
		t.Errorf("%d clusters and %d placements, want 3 and 3", len(snapshot.Clusters), len(snapshot.Placements))
	}
}
