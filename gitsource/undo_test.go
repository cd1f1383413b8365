package gitsource

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// What some commits have changed is undone in a later one. What was changed since stays, also in the same files; the same lines
// are conflicts.
func TestUndo(t *testing.T) {
	g := gitrepo.New(t)
	good := g.Commit("good", map[string]string{"app/web.yaml": "image: 1\na\nb\nc\nreplicas: 1\n", "app/removed.yaml": "x: 1\n", "same": "1\n", "old/only.yaml": "y: 1\n"})
	g.Git("rm", "-q", "-r", "app/removed.yaml", "old")
	failed := g.Commit("failed", map[string]string{"app/web.yaml": "image: 2\na\nb\nc\nreplicas: 1\n", "app/added.yaml": "x: 1\n", "same": "2\n"})
	head := g.Commit("since", map[string]string{"app/web.yaml": "image: 2\na\nb\nc\nreplicas: 3\n", "same": "3\n", "other": "1\n"})
	r := start(t, config(t, g.Dir))
	r.wantHead(head)
	got, err := Undo(t.Context(), r.Repo, head, failed, good)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"app/web.yaml": "image: 1\na\nb\nc\nreplicas: 3\n", "app/added.yaml": "absent", "app/removed.yaml": "x: 1\n", "old/only.yaml": "y: 1\n"}
	files := map[string]string{}
	for path, content := range got.Files {
		if files[path] = string(content); content == nil {
			files[path] = "absent"
		}
	}
	if !maps.Equal(files, want) || !slices.Equal(got.Conflicts, []string{"same"}) {
		t.Errorf("the files are %v, and the conflicts %v", files, got.Conflicts)
	}
	if _, err := Undo(t.Context(), r.Repo, head, good, failed); !errors.Is(err, ErrNotInHistory) {
		t.Errorf("the commits in the wrong order: %v", err)
	}
}
