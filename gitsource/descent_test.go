package gitsource

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A history contains its own commit and all ancestors, named by any part of their hashes, and
// nothing else: no file, no other branch, and no object that was never fetched. The log says that a force push has left it.
func TestAHistoryContainsWhatLedToIt(t *testing.T) {
	g := gitrepo.New(t)
	first := g.Commit("first", map[string]string{"a": "1"})
	g.Git("checkout", "-q", "-b", "side")
	side := g.Commit("side", map[string]string{"b": "1"})
	g.Git("checkout", "-q", "main")
	second := g.Commit("second", map[string]string{"a": "2"})
	g.Git("merge", "-q", "--no-edit", "side")
	merged := g.Head()
	file := g.Git("rev-parse", "HEAD:a")
	var log bytes.Buffer
	cfg := config(t, g.Dir)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := start(t, cfg)
	r.wantHead(merged)
	g.Git("reset", "-q", "--hard", first)
	rewritten := g.Commit("rewritten", map[string]string{"a": "3"})
	if err := errors.Join(r.poll(), r.again()); err != nil {
		t.Fatal(err)
	}
	r.wantHead(rewritten)
	if want := `msg="the history was rewritten: the new commit does not descend from the one before" commit=` + rewritten + " before=" + merged; strings.Count(log.String(), want) != 1 {
		t.Errorf("the log has no line of the force push:\n%s", log.String())
	}
	unborn := strings.Repeat("0", 40)
	tests := []struct {
		head, commit string
		want         bool
	}{
		{merged, merged, true}, {merged, second, true}, {merged, side, true}, {merged, first, true},
		{merged, second[:7], true}, {merged, second[:8], true}, {merged, strings.ToUpper(side), true},
		{second, side, false}, {first, second, false}, {merged, file, false}, {merged, file[:9], false},
		{rewritten, first, true}, {rewritten, second, false}, {second, rewritten, false},
		{merged, unborn, false}, {merged, unborn + "0", false}, {merged, "nonsense", false}, {merged, second + "0", false},
	}
	for _, test := range tests {
		got, err := r.Contains(t.Context(), test.head, test.commit)
		if err != nil || got != test.want {
			t.Errorf("%.8s contains %s: %t (%v), want %t", test.head, test.commit, got, err, test.want)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.Contains(gone, merged, first); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for the answer, and it was sought: %v", err)
	}
	for _, head := range []string{unborn, "main"} {
		if _, err := r.Contains(t.Context(), head, first); err == nil {
			t.Errorf("the history of %s, which is not there, has an answer", head)
		}
	}
}
