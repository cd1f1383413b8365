package objects

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A tree is complete if the store has every object of it, except the commits of submodules.
func TestComplete(t *testing.T) {
	s, st := newSource(t), create(t)
	file, missing := s.blob("file"), s.blob("not in the pack")
	known := func(plumbing.Hash) bool { return false }
	sub := s.tree(entry("100644", "f", file), entry("160000", "module", missing))
	lacksFile := s.tree(entry("100644", "f", missing))
	deep := s.tree(entry("100644", "f", file))
	hashes := []plumbing.Hash{file, sub, lacksFile, deep}
	for range MaxDepth + 1 {
		deep = s.tree(entry("40000", "d", deep))
		hashes = append(hashes, deep)
	}
	tests := map[string]struct {
		root  plumbing.Hash
		known func(plumbing.Hash) bool
		says  string
	}{
		"complete":          {s.tree(entry("40000", "a", sub), entry("40000", "b", sub)), known, ""},
		"a missing file":    {s.tree(entry("40000", "a", lacksFile)), known, "a/f: object " + missing.String() + ": missing"},
		"a missing tree":    {s.tree(entry("40000", "a", missing)), known, "a: object " + missing.String() + ": missing"},
		"a known directory": {s.tree(entry("40000", "a", lacksFile)), func(h plumbing.Hash) bool { return h == lacksFile }, ""},
		"a file as a tree":  {s.tree(entry("40000", "a", file)), known, "object is of another type"},
		"too deep":          {deep, known, "nest more than 2048 deep"},
	}
	for _, test := range tests {
		hashes = append(hashes, test.root)
	}
	if err := st.AddPack(t.Context(), strings.NewReader(string(s.pack(0, false, hashes...))), Limits{Objects: 10_000, ObjectBytes: mib, UnpackedBytes: mib}); err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		err := Complete(t.Context(), st, test.root, test.known)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
		if lacks := strings.Contains(test.says, "missing"); IsDamage(err) != lacks {
			t.Errorf("%s: %v, damage %t", name, err, lacks)
		}
	}
}

// While directories are checked, those above are not in memory.
func TestCompletenessIsBounded(t *testing.T) {
	const levels, files = 40, 5000
	s, st := newSource(t), create(t)
	file := s.blob("file")
	deepest := s.tree(entry("100644", "f", file))
	hashes, dir := []plumbing.Hash{file, deepest}, deepest
	for level := range levels {
		entries := []string{entry("40000", fmt.Sprint("a", level), dir)}
		for i := range files {
			entries = append(entries, entry("100644", fmt.Sprintf("b%05d", i), file))
		}
		dir = s.tree(entries...)
		hashes = append(hashes, dir)
	}
	addPack(t, st, s.pack(0, false, hashes...))
	heap := func() uint64 {
		st.DropBases()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, most := heap(), uint64(0)
	err := Complete(t.Context(), st, dir, func(h plumbing.Hash) bool {
		if h == deepest {
			most = heap()
		}
		return false
	})
	if err != nil || most == 0 || most > before+4*mib {
		t.Errorf("%v, %d bytes more than before", err, int64(most)-int64(before)) //nolint:gosec // a heap is smaller
	}
}

// A path that many directories make is not read once for each of its names, and an error has only its beginning.
func TestLongPathsOfErrorsAreCut(t *testing.T) {
	s, st := newSource(t), create(t)
	dir := s.tree(entry("100644", "f", s.blob("missing")))
	hashes := []plumbing.Hash{dir}
	for range 100 {
		dir = s.tree(entry("40000", strings.Repeat("d", maxName), dir))
		hashes = append(hashes, dir)
	}
	addPack(t, st, s.pack(0, false, hashes...))
	if err := Complete(t.Context(), st, dir, func(plumbing.Hash) bool { return false }); !IsDamage(err) || len(err.Error()) > 2000 {
		t.Errorf("an error of %d bytes: %.2000v", len(err.Error()), err)
	}
}

// Nothing has names that no file system has, and what is wrong with a tree is said in a few words.
func TestLongNamesAreRefused(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for raw, says := range map[string]string{
		entry("100644", long[:1024], plumbing.Hash{}): "",
		entry("100644", long[:1025], plumbing.Hash{}): "has a name of 1025 bytes, at most 1024",
		entry("40000", long, plumbing.Hash{}):         "has a name of 1048576 bytes",
		entry(long, "a", plumbing.Hash{}):             "has unknown mode",
	} {
		_, err := ParseTree(plumbing.Hash{}, []byte(raw))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 200) {
			t.Errorf("%.300v, want %q", err, says)
		}
	}
}

// A directory is read once, unless it is too large for the cache and another such directory was read since.
func TestTreeCache(t *testing.T) {
	s, st := newSource(t), create(t)
	file := s.blob("file")
	tree := s.tree(entry("100644", "f", file))
	addPack(t, st, s.pack(0, false, file, tree))
	other := s.tree(entry("100644", "g", file))
	addPack(t, st, s.pack(0, false, other))
	for limit, reads := range map[int]int{100: 2, 2: 3} {
		cache, n := NewTreeCache(limit), 0
		read := func(h plumbing.Hash) ([]object.TreeEntry, error) { n++; return st.Tree(h) }
		for i, dir := range []plumbing.Hash{tree, tree, other, other, tree, tree} {
			entries, err := cache.Read(dir, read)
			if want := []string{"f", "f", "g", "g", "f", "f"}[i]; err != nil || len(entries) != 1 || entries[0].Name != want {
				t.Errorf("entries are %v, %v", entries, err)
			}
		}
		if n != reads {
			t.Errorf("with room for %d entries %d reads, want %d", limit, n, reads)
		}
	}
}

// A name is looked up again without reading the directory, also in several that are too large for the cache.
func TestNamesInLargeDirectoriesAreCached(t *testing.T) {
	cache, n := NewTreeCache(2), 0
	read := func(h plumbing.Hash) ([]object.TreeEntry, error) {
		n++
		return []object.TreeEntry{{Name: "a", Hash: h}, {Name: "b"}, {Name: "c"}}, nil
	}
	for range 3 {
		for _, dir := range []plumbing.Hash{{1}, {2}, {3}} {
			if e, ok, err := cache.Find(dir, "a", read); err != nil || !ok || e.Hash != dir {
				t.Errorf("found %v, %t, %v", e, ok, err)
			}
			if e, ok, err := cache.Find(dir, "z", read); err != nil || ok {
				t.Errorf("found %v, %t, %v", e, ok, err)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d reads", n)
	}
	failed := errors.New("failed")
	if _, _, err := cache.Find(plumbing.Hash{4}, "a", func(plumbing.Hash) ([]object.TreeEntry, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("an error is lost: %v", err)
	}
}
