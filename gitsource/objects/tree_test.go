package objects

import (
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

// A directory is read once, and again only if it was too large for the cache.
func TestTreeCache(t *testing.T) {
	s, st := newSource(t), create(t)
	file := s.blob("file")
	tree := s.tree(entry("100644", "f", file))
	addPack(t, st, s.pack(0, false, file, tree))
	for limit, reads := range map[int]int{100: 1, 2: 2} {
		cache, n := NewTreeCache(limit), 0
		for range 2 {
			entries, err := cache.Read(tree, func(h plumbing.Hash) ([]object.TreeEntry, error) { n++; return st.Tree(h) })
			if err != nil || len(entries) != 1 || entries[0].Name != "f" {
				t.Errorf("entries are %v, %v", entries, err)
			}
		}
		if n != reads {
			t.Errorf("with room for %d entries %d reads, want %d", limit, n, reads)
		}
	}
}
