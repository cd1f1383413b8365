package migration

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/test/golden"
)

// TestFind compares the proposal for each repository with the recorded one, and loads the repository with it.
func TestFind(t *testing.T) {
	golden.Archives(t, filepath.Join("testdata", "*.txtar"), func(t *testing.T, archive *txtar.Archive) {
		files := fstest.MapFS{}
		tool := ""
		for _, f := range archive.Files {
			switch f.Name {
			case "tool":
				tool = strings.TrimSpace(string(f.Data))
			case "want":
			default:
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
		}
		var b strings.Builder
		p, err := Find(files, tool)
		if err != nil {
			b.WriteString(err.Error() + "\n")
			golden.Answer(t, archive, "want", b.String())
			return
		}
		load := func() *hub.Snapshot {
			s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{}, p.With(files))
			if err != nil {
				t.Fatalf("the repository does not load with the proposal: %v", err)
			}
			return s
		}
		if p, _, err = p.Apart(load()); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Files)) {
			b.WriteString("# " + name + "\n" + p.Files[name])
		}
		for _, text := range p.Left {
			b.WriteString("not taken: " + text + "\n")
		}
		for _, w := range load().Warnings {
			b.WriteString(w.Marked() + "\n")
		}
		golden.Answer(t, archive, "want", b.String())
	})
}
