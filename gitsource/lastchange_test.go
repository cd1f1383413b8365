package gitsource

import (
	"fmt"
	"strings"
	"testing"
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
