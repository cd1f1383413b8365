package proposal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// An edited tree has the new files, not the removed ones, and the others as they were, however they
// are read.
func TestFilesOfAnEditedTree(t *testing.T) {
	base := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "dir/b.yaml": {Data: []byte("b")}, "dir/c.yaml": {Data: []byte("c")}}
	tree := treeWith(base, []FileChange{{Path: "dir/b.yaml", After: []byte("edited")}, {Path: "dir/c.yaml"}, {Path: "dir/new.yaml", After: []byte("new")}})
	got := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := tree.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		text, err := io.ReadAll(file)
		if err != nil {
			return err
		}
		got[name] = string(text)
		opened, errOpened := file.Stat()
		entry, errEntry := d.Info()
		stat, errStat := fs.Stat(tree, name)
		if err := errors.Join(errOpened, errEntry, errStat); err != nil {
			return err
		}
		for _, info := range []fs.FileInfo{opened, entry, stat} {
			if info.Size() != int64(len(text)) || info.Name() != path.Base(name) || info.IsDir() || !info.Mode().IsRegular() {
				t.Errorf("%s has %d bytes and the information %v", name, len(text), info)
			}
		}
		return nil
	})
	if want := map[string]string{"a.yaml": "a", "dir/b.yaml": "edited", "dir/new.yaml": "new"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the files are %q, %v", got, err)
	}
	for how, open := range map[string]func(string) error{
		"opened": func(name string) error { _, err := tree.Open(name); return err },
		"found":  func(name string) error { _, err := fs.Stat(tree, name); return err },
		"read":   func(name string) error { _, err := fs.ReadFile(tree, name); return err },
	} {
		for _, name := range []string{"dir/c.yaml", "none.yaml"} {
			if err := open(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is %s: %v", name, how, err)
			}
		}
	}
}

// hashedFS is a tree with a hash for each of its names.
type hashedFS struct{ fstest.MapFS }

func (h hashedFS) Hash(name string) (string, error) {
	if _, err := fs.Stat(h, name); err != nil {
		return "", err
	}
	return "hash of " + name, nil
}

// Only files that are changed, and the directories above them, have other hashes than in Git, so that
// all others are not parsed again.
func TestHashesOfAnEditedTree(t *testing.T) {
	base := hashedFS{fstest.MapFS{"a/b/c.yaml": {}, "a/d.yaml": {}, "e/f.yaml": {}, "g.yaml": {}}}
	hashes := func(changes ...FileChange) (out []string) {
		tree := treeWith(base, changes).(hasher)
		for _, name := range []string{".", "a", "a/b", "a/b/c.yaml", "a/d.yaml", "e", "e/f.yaml", "g.yaml"} {
			h, err := tree.Hash(name)
			if err != nil {
				t.Fatal(err)
			}
			if h != "hash of "+name {
				out = append(out, name)
			}
		}
		return out
	}
	for name, test := range map[string]struct {
		changes []FileChange
		want    []string
	}{
		"nothing":        {nil, nil},
		"a file":         {[]FileChange{{Path: "a/b/c.yaml", After: []byte("x")}}, []string{".", "a", "a/b", "a/b/c.yaml"}},
		"at the top":     {[]FileChange{{Path: "g.yaml", After: []byte("x")}}, []string{".", "g.yaml"}},
		"a new file":     {[]FileChange{{Path: "e/new.yaml", After: []byte("x")}}, []string{".", "e"}},
		"a removed file": {[]FileChange{{Path: "e/f.yaml"}}, []string{".", "e", "e/f.yaml"}},
	} {
		if got := hashes(test.changes...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q have other hashes, want %q", name, got, test.want)
		}
	}
	if _, err := treeWith(base, []FileChange{{Path: "g.yaml", After: []byte("x")}}).(hasher).Hash("none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// Two edited trees have equal hashes exactly if their changes are equal.
func TestHashesOfEqualEditsAreEqual(t *testing.T) {
	base := hashedFS{fstest.MapFS{"a.yaml": {}, "b.yaml": {}}}
	change := rapid.Custom(func(t *rapid.T) FileChange {
		c := FileChange{Path: rapid.SampledFrom([]string{"a.yaml", "b.yaml"}).Draw(t, "path")}
		if rapid.Bool().Draw(t, "exists") {
			c.After = []byte(rapid.SampledFrom([]string{"", "x", "y", "x\ny"}).Draw(t, "text"))
		}
		return c
	})
	edits := rapid.SliceOfNDistinct(change, 0, 2, func(c FileChange) string { return c.Path })
	rapid.Check(t, func(t *rapid.T) {
		one, other := edits.Draw(t, "one"), edits.Draw(t, "other")
		hash := func(changes []FileChange) string {
			h, err := treeWith(base, changes).(hasher).Hash(".")
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		text := func(changes []FileChange) string {
			var out []string
			for _, c := range changes {
				out = append(out, fmt.Sprintf("%s %v %q", c.Path, c.After == nil, c.After))
			}
			slices.Sort(out)
			return fmt.Sprint(out)
		}
		if same := text(one) == text(other); (hash(one) == hash(other)) != same {
			t.Errorf("%s and %s: equal hashes %v", text(one), text(other), !same)
		}
	})
}

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
