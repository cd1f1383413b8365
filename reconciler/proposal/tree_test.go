package proposal

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
)

// An edited tree reads whole files, as the loader wants to. What it returns may be changed.
func TestAnEditedTreeReadsFiles(t *testing.T) {
	base := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "b.yaml": {Data: []byte("b")}, "c.yaml": {Data: []byte("c")}}
	tree, ok := treeWith(base, []FileChange{{Path: "b.yaml", After: []byte("edited")}, {Path: "c.yaml"}}).(fs.ReadFileFS)
	if !ok {
		t.Fatal("files are read in parts")
	}
	for range 2 {
		for name, want := range map[string]string{"a.yaml": "a", "b.yaml": "edited"} {
			got, err := tree.ReadFile(name)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			clear(got)
		}
	}
	if _, err := tree.ReadFile("c.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
}
