package gitsource

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A line of the merged files is found in the head, also if the base has moved it. Exactly the
// lines that the pull request adds or changes are reported as added.
func TestHeadLines(t *testing.T) {
	g := gitrepo.New(t)
	numbers := "1\n2\n3\n4\n5\n6\n"
	g.Commit("ancestor", map[string]string{"both": numbers, "old": strings.Repeat("a line that is moved\n", 9), "theirs": numbers})
	g.Git("checkout", "-q", "-b", "topic")
	g.Git("rm", "-q", "old")
	head := g.Commit("topic", map[string]string{
		"both": strings.Replace(numbers, "5", "five", 1), "new": "a\nb\n",
		"moved": strings.Repeat("a line that is moved\n", 9) + "and another\n", "large": strings.Repeat("x\n", maxDiffLines+1),
	})
	g.Git("checkout", "-q", "main")
	base := g.Commit("main", map[string]string{"both": "zero\n" + numbers, "theirs": numbers + "7\n"})
	r := start(t, config(t, g.Dir))
	r.wantHead(base)
	if err := r.FetchRef(t.Context(), "refs/heads/topic", head); err != nil {
		t.Fatal(err)
	}
	merged, err := r.Merge(t.Context(), base, head)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(merged, "both"); err != nil || string(text) != "zero\n1\n2\n3\n4\nfive\n6\n" {
		t.Fatalf("it merges to %q, %v", text, err)
	}
	tests := map[Position]HeadLine{
		{"both", 1}:    {},         // of the base
		{"both", 2}:    {1, false}, // of both
		{"both", 6}:    {5, true},
		{"both", 7}:    {6, false},
		{"both", 0}:    {},
		{"both", 8}:    {},
		{"new", 2}:     {2, true},
		{"moved", 10}:  {10, false},
		{"large", 1}:   {},
		{"old", 1}:     {},
		{"theirs", 7}:  {},
		{"theirs", 2}:  {2, false},
		{"missing", 1}: {},
	}
	for p, want := range tests {
		if got, err := r.HeadLines(t.Context(), base, head, merged, []Position{p}); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%v is %+v, %v, want %+v", p, got, err, want)
		}
	}
}
