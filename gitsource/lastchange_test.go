package gitsource

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// The last change of a file is that of the commit which made it, with its signer, also if newer commits and merges by others follow.
func TestLastChanges(t *testing.T) {
	s := newSignedRepo(t, "ada", "bob")
	s.sign("ada", file{"approvals/old.yaml": "1", "apps/x": "1"})
	s.sign("bob", file{"approvals/new.yaml": "1", "apps/y": "1"})
	s.Git("checkout", "-q", "-b", "side", "HEAD~")
	s.sign("bob", file{"approvals/side.yaml": "1", "approvals/both.yaml": "1"})
	s.Git("checkout", "-q", "main")
	s.Git("rm", "-q", "approvals/old.yaml")
	s.sign("ada", file{"apps/x": "2"})
	s.as("ada", "merge", "-q", "--no-ff", "--no-commit", "side")
	s.sign("ada", file{"approvals/both.yaml": "of the merge"})
	head := s.sign("ada", file{"apps/x": "3"})
	cfg := s.config(t)
	cfg.Signatures.Paths = nil
	r := start(t, cfg)
	r.wantHead(head)
	got, err := r.LastChanges(t.Context(), head, []string{"approvals/new.yaml", "approvals/old.yaml", "approvals/side.yaml", "approvals/both.yaml", "approvals", "approvals/new.yaml/x", "absent/x"})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, p := range []string{"approvals/new.yaml", "approvals/side.yaml", "approvals/both.yaml"} {
		who, _, _ := strings.Cut(got[p].Signer, " ")
		text += fmt.Sprintf("%s %s %s\n", p, who, strings.TrimSpace(got[p].Subject))
		delete(got, p)
	}
	const want = "approvals/new.yaml bob by bob\napprovals/side.yaml bob by bob\napprovals/both.yaml ada by ada\n"
	if text != want || len(got) != 0 {
		t.Errorf("the last changes are\n%sand %v, want\n%s", text, got, want)
	}
}

// A part of a file is what it is since the oldest commit from which on it has not changed, whatever else of the file has changed. What came with a merge
// is there since the merge.
func TestSince(t *testing.T) {
	g := gitrepo.New(t)
	g.Commit("old", map[string]string{"a.yaml": "one=1", "moved.yaml": "one=1"})
	g.Commit("one", map[string]string{"a.yaml": "one=2"})
	g.Git("checkout", "-q", "-b", "side")
	g.Commit("side", map[string]string{"side.yaml": "one=1"})
	g.Git("checkout", "-q", "main")
	g.Commit("two", map[string]string{"a.yaml": "one=2 two=1"})
	g.Commit("gone", map[string]string{"moved.yaml": ""})
	g.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	head := g.Commit("again", map[string]string{"moved.yaml": "one=1", "a.yaml": "two=1 one=2"})
	r := start(t, config(t, serveGit(t, g).URL))
	r.wantHead(head)
	var parts []FilePart
	for _, words := range []string{"a.yaml one", "a.yaml two", "a.yaml three", "side.yaml one", "moved.yaml one", "absent.yaml one", "sub/absent.yaml one"} {
		p, name, _ := strings.Cut(words, " ")
		parts = append(parts, FilePart{p, name})
	}
	found, err := r.Since(t.Context(), head, parts, func(_ string, content []byte) map[string]string {
		out := map[string]string{}
		for field := range strings.FieldsSeq(string(content)) {
			name, value, _ := strings.Cut(field, "=")
			out[name] = value
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range parts {
		got = append(got, found[p].Subject)
	}
	if want := []string{"one", "two", "", "merge", "again", "", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
