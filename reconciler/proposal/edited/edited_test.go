package edited

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"testing"
	"testing/fstest"
)

// An edited tree has the new files, not the removed ones, and the others as they were, however they
// are read.
func TestFilesOfAnEditedTree(t *testing.T) {
	base := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "dir/b.yaml": {Data: []byte("b")}, "dir/c.yaml": {Data: []byte("c")}}
	tree := Tree(base, map[string][]byte{"dir/b.yaml": []byte("edited"), "dir/c.yaml": nil, "dir/new.yaml": []byte("new"), "made/deep/new.yaml": []byte("deep"), "made/none.yaml": nil})
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
	if want := map[string]string{"a.yaml": "a", "dir/b.yaml": "edited", "dir/new.yaml": "new", "made/deep/new.yaml": "deep"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the files are %q, %v", got, err)
	}
	made, err := tree.Open("made/deep")
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	if list, err := made.(fs.ReadDirFile).ReadDir(-1); err != nil || len(list) != 1 || list[0].Name() != "new.yaml" {
		t.Errorf("a new directory has %v, %v", list, err)
	}
	for how, open := range map[string]func(string) error{
		"opened": func(name string) error { _, err := tree.Open(name); return err },
		"found":  func(name string) error { _, err := fs.Stat(tree, name); return err },
		"read":   func(name string) error { _, err := fs.ReadFile(tree, name); return err },
	} {
		for _, name := range []string{"dir/c.yaml", "none.yaml", "made/none.yaml", "made/other"} {
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

// Only files that are changed have other hashes than in Git, so that all others are not parsed again.
func TestHashesOfAnEditedTree(t *testing.T) {
	base := hashedFS{fstest.MapFS{"a/b/c.yaml": {}, "a/d.yaml": {}, "g.yaml": {}}}
	tree := Tree(base, map[string][]byte{"a/b/c.yaml": []byte("x"), "a/new.yaml": []byte(""), "g.yaml": nil}).(hasher)
	hashes := map[string]bool{}
	for name, changed := range map[string]bool{"a/b/c.yaml": true, "a/d.yaml": false, "a/new.yaml": true} {
		h, err := tree.Hash(name)
		if err != nil || (h != "hash of "+name) != changed || hashes[h] {
			t.Errorf("%s: %q, %v", name, h, err)
		}
		hashes[h] = true
	}
	for _, name := range []string{"g.yaml", "none.yaml"} {
		if _, err := tree.Hash(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which does not exist: %v", name, err)
		}
	}
}

// Two edits of a file have equal hashes exactly if the new content is equal.
func TestHashesOfEqualEditsAreEqual(t *testing.T) {
	hash := func(text string) string {
		h, err := Tree(hashedFS{fstest.MapFS{"a.yaml": {}}}, map[string][]byte{"a.yaml": []byte(text)}).(hasher).Hash("a.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, one := range []string{"", "x", "y", "x\ny"} {
		for _, other := range []string{"", "x", "y", "x\ny"} {
			if (hash(one) == hash(other)) != (one == other) {
				t.Errorf("%q and %q: equal hashes %t", one, other, one != other)
			}
		}
	}
}

// An edited tree reads whole files, as the loader wants to. What it returns may be changed.
func TestAnEditedTreeReadsFiles(t *testing.T) {
	base := fstest.MapFS{"a.yaml": {Data: []byte("a")}, "b.yaml": {Data: []byte("b")}, "c.yaml": {Data: []byte("c")}}
	tree, ok := Tree(base, map[string][]byte{"b.yaml": []byte("edited"), "c.yaml": nil}).(fs.ReadFileFS)
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
