package hub

import (
	"os"
	"path/filepath"
	"testing"
)

// The examples are read as a user would read them, from a checkout.
func TestExamples(t *testing.T) {
	for _, name := range []string{"quickstart", "broken-syntax", "broken-fields", "broken-duplicates"} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := Load(Commit{Hash: "c0ffee"}, os.DirFS(filepath.Join("../../examples", name)), Options{})
			got := tell(snapshot, err)
			golden := filepath.Join("testdata/examples", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the answer changed; got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestQuickstartHasNothingToComplainOf(t *testing.T) {
	snapshot, err := Load(Commit{}, os.DirFS("../../examples/quickstart"), Options{})
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
