package objects

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

func rawEntry(mode, name string) string { return mode + " " + name + "\x00" + strings.Repeat("h", 20) }

// A tree that programs could read in two ways is refused.
func TestParseTree(t *testing.T) {
	tests := map[string]struct {
		raw   string
		names []string
		says  string
	}{
		"empty":            {"", nil, ""},
		"sorted as Git":    {rawEntry("100644", "a.b") + rawEntry("40000", "a"), []string{"a", "a.b"}, ""},
		"old modes":        {rawEntry("040000", "d") + rawEntry("100664", "f"), []string{"d", "f"}, ""},
		"odd names":        {rawEntry("100644", "\xff\xfe") + rawEntry("100644", `c:\x`), []string{`c:\x`, "\xff\xfe"}, ""},
		"cut short":        {rawEntry("100644", "a")[:20], nil, "ends in the middle"},
		"no name":          {"100644 ", nil, "ends in the middle"},
		"no mode":          {"garbage", nil, "ends in the middle"},
		"unknown mode":     {rawEntry("100000", "a"), nil, "unknown mode"},
		"no mode at all":   {rawEntry("", "a"), nil, "unknown mode"},
		"empty name":       {rawEntry("100644", ""), nil, "not allowed"},
		"this directory":   {rawEntry("40000", "."), nil, "not allowed"},
		"parent directory": {rawEntry("40000", ".."), nil, "not allowed"},
		"Git's own":        {rawEntry("40000", ".git"), nil, "not allowed"},
		"slash":            {rawEntry("100644", "../../etc/passwd"), nil, "not allowed"},
		"twice":            {rawEntry("100644", "a") + rawEntry("40000", "a"), nil, "there twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entries, err := parseTree([]byte(test.raw))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v, want %q", err, test.says)
				}
				return
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name)
			}
			if err != nil || !slices.Equal(names, test.names) {
				t.Errorf("names %q, %v", names, err)
			}
		})
	}
}

// No tree object causes a panic, and every parsed tree is sorted and unambiguous.
func FuzzParseTree(f *testing.F) {
	f.Add([]byte(rawEntry("100644", "a") + rawEntry("40000", "b")))
	f.Add([]byte("100644 a"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		entries, err := parseTree(raw)
		if err != nil {
			return
		}
		for i, e := range entries {
			if e.Name == "" || strings.Contains(e.Name, "/") || i > 0 && entries[i-1].Name >= e.Name {
				t.Errorf("entries are %v", entries)
			}
		}
	})
}

// No commit object causes a panic, and a parsed commit keeps all bytes of the message.
func FuzzParseCommit(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte("tree " + h + "\nparent " + h + "\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 -0130\n\nsubject\n\nbody\n"))
	f.Add([]byte("tree " + h + "\nauthor \ncommitter <>>< 9999999999999999999999\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseCommit(plumbing.ZeroHash, raw)
		if err != nil {
			return
		}
		if !strings.HasSuffix(string(raw), c.Message) {
			t.Errorf("message %q is not the end", c.Message)
		}
	})
}

func tagOf(h plumbing.Hash, kind string) string {
	return "object " + h.String() + "\ntype " + kind + "\ntag v1\ntagger A <a@b> 1 +0000\n\nv1\n"
}

// A tag leads to its commit, also through other tags, and to nothing else.
func TestPeel(t *testing.T) {
	s, st := newSource(t), create(t)
	tree := s.tree()
	commit := s.add(plumbing.CommitObject, "tree "+tree.String()+"\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nfirst\n")
	chain := []plumbing.Hash{s.add(plumbing.TagObject, tagOf(commit, "commit"))}
	for range 8 {
		chain = append(chain, s.add(plumbing.TagObject, tagOf(chain[len(chain)-1], "tag")))
	}
	ofTree := s.add(plumbing.TagObject, tagOf(tree, "tree"))
	untyped := s.add(plumbing.TagObject, "object "+commit.String()+"\ntag v1\n")
	empty := s.add(plumbing.TagObject, "object "+commit.String())
	nothing := s.add(plumbing.TagObject, "tag v1\n")
	addPack(t, st, s.pack(0, false, append(chain, tree, commit, ofTree, untyped, empty, nothing)...))
	tests := map[string]struct {
		from plumbing.Hash
		says string
	}{
		"a commit":       {commit, ""},
		"a tag":          {chain[0], ""},
		"a tag of a tag": {chain[1], ""},
		"8 tags":         {chain[6], ""},
		"too many tags":  {chain[8], "more than 8 deep"},
		"a tree's tag":   {ofTree, "points at a tree, not at a commit"},
		"no type":        {untyped, "has no type where it should be"},
		"only an object": {empty, "has no type"},
		"no object":      {nothing, "has no object where it should be"},
		"missing":        {plumbing.NewHash(strings.Repeat("1", 40)), "missing from the store"},
	}
	for name, test := range tests {
		got, err := st.Peel(test.from)
		switch {
		case test.says == "" && (err != nil || got != commit):
			t.Errorf("%s leads to %s, %v", name, got, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}

func TestParseHash(t *testing.T) {
	full := strings.Repeat("0aF", 13) + "1"
	if h, err := ParseHash(full); err != nil || h.String() != strings.ToLower(full) {
		t.Errorf("%s is %s, %v", full, h, err)
	}
	for _, bad := range []string{"", "main", full[:39], full + "0", strings.Repeat("g", 40)} {
		if _, err := ParseHash(bad); err == nil || !strings.Contains(err.Error(), "is not a whole commit hash") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// No tag causes a panic, and what it points to is in its first lines.
func FuzzParseTag(f *testing.F) {
	f.Add([]byte("object 0123456789abcdef0123456789abcdef01234567\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nv1\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		target, kind, err := parseTag(raw)
		if err == nil && !bytes.HasPrefix(bytes.ToLower(raw), []byte("object "+target.String()+"\ntype "+strings.ToLower(kind))) {
			t.Errorf("%q points to %s %q", raw, kind, target)
		}
	})
}
