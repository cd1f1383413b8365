package operate

import (
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The author is written as Git writes it, so that no other field of the commit can be forged.
func TestAuthorOfARollback(t *testing.T) {
	for text, want := range map[string]string{
		"Ada Lovelace <ada@example.com>": "Ada Lovelace|ada@example.com",
		"  Ada  <ada@example.com>":       "Ada|ada@example.com",
		"Ada":                            "",
		"<ada@example.com>":              "",
		" <ada@example.com>":             "",
		"Ada <>":                         "",
		"Ada <ada@example.com":           "",
		"Ada <ada@example.com> x":        "",
		"Ada <a<b>":                      "",
		"Ada\nx <ada@example.com>":       "",
	} {
		name, email, err := (&rollback{author: text}).who()
		switch {
		case want == "" && (err == nil || !strings.HasSuffix(err.Error(), `write "NAME <ADDRESS>"`)):
			t.Errorf("%q is %q and %q: %v", text, name, email, err)
		case want != "" && (err != nil || name+"|"+email != want):
			t.Errorf("%q is %q and %q: %v", text, name, email, err)
		}
	}
}

// The message names the commit, and why it was chosen.
func TestMessageOfARollback(t *testing.T) {
	for want, proven := range map[string]bool{"as requested.\n": false, "the last whose content was available on every cluster.\n": true} {
		r := &rollback{name: "crp/web", from: gitsource.Commit{Hash: "a1a1a1a1a1a1", Subject: "Bring the web"}, proven: proven}
		if got := r.message(); !strings.HasPrefix(got, "Roll crp/web back to a1a1a1a1\n\n") || !strings.Contains(got, "\na1a1a1a1a1a1\n(Bring the web),\n") || !strings.HasSuffix(got, want) {
			t.Errorf("%q, want the end %q", got, want)
		}
	}
}

// What a kustomization builds is reverted with all of its inputs.
func TestFilesOf(t *testing.T) {
	s := &hub.Snapshot{Sources: map[string][]string{"app/kustomization.yaml": {"app/kustomization.yaml", "base/web.yaml"}}}
	got := filesOf(s, []api.Origin{
		{Path: "z.yaml", Line: 1}, {Path: "z.yaml", Line: 9}, {Path: "app/generated", Kustomization: "app/kustomization.yaml"},
	})
	if want := []string{"app/kustomization.yaml", "base/web.yaml", "z.yaml"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestJoinNames(t *testing.T) {
	for want, names := range map[string][]string{"a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := joinNames(names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A branch is pushed only where the configuration says, and never to the branch that the daemon
// follows.
func TestRollbackNeedsToKnowWhereToPush(t *testing.T) {
	r := &rollback{push: true, path: t.TempDir()}
	if err := r.run(t.Context(), &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), "--push needs --config") {
		t.Errorf("without --config: %v", err)
	}
	r = &rollback{push: true, at: client.Connection{Config: "gitfleet.yaml"}, path: t.TempDir()}
	if err := r.run(t.Context(), &strings.Builder{}); err == nil || strings.HasPrefix(err.Error(), "--push") {
		t.Errorf("outside of a clone: %v", err)
	}
}
