package tree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

// A hashedFS is a file system with hashes, such as the tree of a commit. It counts its listings.
type hashedFS struct {
	fstest.MapFS
	lists   int
	failing bool
}

var errFailing = errors.New("object not found")

func (f *hashedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.lists++
	if f.failing {
		return nil, errFailing
	}
	return f.MapFS.ReadDir(name)
}

func (f *hashedFS) Hash(name string) (string, error) {
	if f.failing {
		return "", errFailing
	}
	file, ok := f.MapFS[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return fmt.Sprintf("%x", sha256.Sum256(file.Data)), nil
}

func files(texts map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range texts {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

// irregular are the files of a repository with a link, a submodule and a device.
func irregular() fstest.MapFS {
	f := files(map[string]string{"app/a.yaml": "a", "b.yaml": "b"})
	f["app/link"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../app")}
	f["app/module"] = &fstest.MapFile{Mode: fs.ModeIrregular}
	f["app/pipe"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	return f
}

// A path leads through directories only: what is below a link or a submodule is not looked for.
func TestLookup(t *testing.T) {
	tree := New(irregular(), 1<<20)
	for name, want := range map[string]struct {
		mode fs.FileMode
		at   string
		ok   bool
	}{
		".":               {fs.ModeDir, ".", true},
		"app":             {fs.ModeDir, "app", true},
		"app/a.yaml":      {0, "app/a.yaml", true},
		"app/none":        {0, "app/none", false},
		"none/a.yaml":     {0, "none/a.yaml", false},
		"b.yaml/below":    {0, "b.yaml", false},
		"app/link":        {fs.ModeSymlink, "app/link", true},
		"app/link/a.yaml": {fs.ModeSymlink, "app/link", true},
		"app/module/x/y":  {fs.ModeIrregular, "app/module", true},
		"app/pipe":        {fs.ModeNamedPipe, "app/pipe", true},
		"../app":          {0, "../app", false},
		"/app":            {0, "/app", false},
		"app/":            {0, "app/", false},
	} {
		mode, at, ok, err := tree.Lookup(name)
		if mode != want.mode || at != want.at || ok != want.ok || err != nil {
			t.Errorf("%s: mode %v at %s, %t, %v; want %v at %s, %t", name, mode, at, ok, err, want.mode, want.at, want.ok)
		}
	}
}

func TestIsFile(t *testing.T) {
	tree := New(irregular(), 1<<20)
	for name, want := range map[string]bool{
		"app/a.yaml": true, "app": false, "app/none": false, "app/link": false, "app/link/a.yaml": false, "app/module": false, "b.yaml/below": false,
	} {
		if got, err := tree.IsFile(name); got != want || err != nil {
			t.Errorf("%s is a file: %t, %v; want %t", name, got, err, want)
		}
	}
}

// Entries are sorted by name, and are found by name.
func TestList(t *testing.T) {
	tree := New(irregular(), 1<<20)
	l, err := tree.List("app")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range l {
		names = append(names, e.Name())
	}
	if want := []string{"a.yaml", "link", "module", "pipe"}; !slices.Equal(names, want) {
		t.Errorf("entries %v, want %v", names, want)
	}
	if e := l.Find("link"); e == nil || e.Type() != fs.ModeSymlink {
		t.Errorf("link is %v", e)
	}
	if e := l.Find("none"); e != nil {
		t.Errorf("none is %v", e)
	}
	if _, err := tree.List("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

// A file at the size limit is read. A larger one is a mistake in the commit, and not an error,
// also if the file system gives a wrong size.
func TestReadLimit(t *testing.T) {
	for name, fsys := range map[string]fs.FS{
		"files are read whole":   files(map[string]string{"a": "1234", "b": "12345"}),
		"files are opened":       onlyOpen{files(map[string]string{"a": "1234", "b": "12345"})},
		"the size is too small":  wrongSize{files(map[string]string{"a": "1234", "b": "12345"}), 1},
		"the size of b is right": wrongSize{files(map[string]string{"a": "1234", "b": "12345"}), 0},
	} {
		tree := New(fsys, 4)
		if data, fault, err := tree.Read("a"); string(data) != "1234" || fault != "" || err != nil {
			t.Errorf("%s: at the limit %q, %q, %v", name, data, fault, err)
		}
		data, fault, err := tree.Read("b")
		if want := "the file is larger than 4 bytes; split it, or raise limits.fileSize"; data != nil || fault != want || err != nil {
			t.Errorf("%s: above the limit %q, %q, %v; want %q", name, data, fault, err, want)
		}
		if _, fault, err := tree.Read("none"); fault != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing file: %q, %v", name, fault, err)
		}
	}
}

// onlyOpen is a file system without ReadFile and Stat.
type onlyOpen struct{ files fstest.MapFS }

func (f onlyOpen) Open(name string) (fs.File, error) { return f.files.Open(name) }

// wrongSize is a file system whose Stat reports less than the real size of files.
type wrongSize struct {
	files fstest.MapFS
	less  int64
}

func (f wrongSize) Open(name string) (fs.File, error) { return f.files.Open(name) }

func (f wrongSize) Stat(name string) (fs.FileInfo, error) {
	info, err := f.files.Stat(name)
	return smallerInfo{info, f.less}, err
}

type smallerInfo struct {
	fs.FileInfo
	less int64
}

func (i smallerInfo) Size() int64 { return i.FileInfo.Size() - i.less }

// Equal hashes mean equal content, with and without the hashes of the file system.
func TestHash(t *testing.T) {
	before := files(map[string]string{"app/a.yaml": "a", "app/b.yaml": "b", "c.yaml": "a"})
	after := files(map[string]string{"app/a.yaml": "changed", "app/b.yaml": "b", "c.yaml": "a"})
	for name, trees := range map[string][2]*Tree{
		"with hashes":    {New(&hashedFS{MapFS: before}, 1<<20), New(&hashedFS{MapFS: after}, 1<<20)},
		"without hashes": {New(before, 1<<20), New(after, 1<<20)},
	} {
		for file, changed := range map[string]bool{"app/a.yaml": true, "app/b.yaml": false, "c.yaml": false} {
			first, err := trees[0].Hash(file)
			second, err2 := trees[1].Hash(file)
			if (first != second) != changed || err != nil || err2 != nil {
				t.Errorf("%s: hashes of %s: %s and %s, %v, %v; want a change: %t", name, file, first, second, err, err2, changed)
			}
		}
		if _, err := trees[0].Hash("app/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing file: %v", name, err)
		}
	}
}

// Files above the size limit have no content to compare, and are not taken for empty files.
func TestHashOfALargeFile(t *testing.T) {
	tree := New(files(map[string]string{"empty": "", "large": "12345"}), 4)
	empty, err := tree.Hash("empty")
	large, err2 := tree.Hash("large")
	if empty == large || err != nil || err2 != nil {
		t.Errorf("hashes %s and %s, %v, %v", empty, large, err, err2)
	}
}

// A directory is listed once for each tree.
func TestListingsAreOfOneTree(t *testing.T) {
	f := &hashedFS{MapFS: files(map[string]string{"a/x": "1"})}
	for _, want := range []int{1, 2} {
		tree := New(f, 1<<20)
		for range 2 {
			if l, err := tree.List("a"); err != nil || len(l) != want || f.lists != want {
				t.Errorf("%v, %v, listed %d times; want %d entries", l, err, f.lists, want)
			}
		}
		f.MapFS["a/y"] = &fstest.MapFile{}
	}
}

// A failure to read a commit is an error of every function, and is not cached.
func TestFailuresAreErrors(t *testing.T) {
	f := &hashedFS{MapFS: files(map[string]string{"a/x": "1"}), failing: true}
	tree := New(f, 1<<20)
	if _, err := tree.List("a"); !errors.Is(err, errFailing) {
		t.Errorf("List: %v", err)
	}
	if _, _, _, err := tree.Lookup("a/x"); !errors.Is(err, errFailing) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := tree.IsFile("a/x"); !errors.Is(err, errFailing) {
		t.Errorf("IsFile: %v", err)
	}
	if _, err := tree.Hash("a/x"); !errors.Is(err, errFailing) {
		t.Errorf("Hash: %v", err)
	}
	f.failing = false
	if ok, err := tree.IsFile("a/x"); !ok || err != nil {
		t.Errorf("after the failure: %t, %v", ok, err)
	}
}

// manyNames is a file system whose directories have many entries each.
type manyNames struct{ fs.FS }

func (manyNames) ReadDir(string) ([]fs.DirEntry, error) {
	return make([]fs.DirEntry, maxListed/3), nil
}

// However many directories are listed, few of their entries are kept: one directory can have any number of paths.
func TestListingsAreBounded(t *testing.T) {
	tree := New(manyNames{fstest.MapFS{}}, 1)
	for i := range 10 {
		if l, err := tree.List(fmt.Sprint(i)); err != nil || len(l) != maxListed/3 {
			t.Fatalf("%d entries, %v", len(l), err)
		}
	}
	sum := 0
	for _, l := range tree.AsStored().listings.dirs {
		sum += len(l)
	}
	if sum == 0 || sum > maxListed {
		t.Errorf("%d entries are kept", sum)
	}
}

// Names in large directories that are looked up in turns do not take forever: the number of entries that are listed is bounded.
func TestLookupsInLargeDirectoriesEnd(t *testing.T) {
	files := manyNames{fstest.MapFS{}}
	tree, lists := New(files, 1), 0
	for ; lists < 1000; lists++ {
		if _, err := tree.List(fmt.Sprint(lists % 6)); err != nil {
			break
		}
	}
	if want := maxRead/(maxListed/3) + 1; lists > want+1 {
		t.Errorf("%d directories were listed, want %d", lists, want)
	}
}
