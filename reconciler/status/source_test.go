package status

import (
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A change of the remote, of the commit in force and of the reason of a refusal is an event about
// the repository.
func TestRepositoryEvents(t *testing.T) {
	commit := func(hash, subject string) hub.Commit { return hub.Commit{Hash: hash, Subject: subject} }
	unreadable := func(s Source) Source { s.Git.Error = "timeout"; return s }
	one, two := commit("0123456789abcdef", "first"), commit("fedcba9876543210", "")
	inForce := Source{Newest: one, InForce: one}
	broken := problem.List{{Origin: api.Origin{Path: "a.yaml", Line: 2}, Severity: problem.Error, Message: "not YAML"}}
	refusedTwo := Source{Newest: two, InForce: one, Problems: broken}
	const refusedText = "Warning CommitRefused Commit fedcba987654 (no subject) is refused, and the last good one stays in force: a.yaml:2: not YAML"
	for name, test := range map[string]struct {
		was, is Source
		want    []string
		commit  string
	}{
		"nothing changes":            {inForce, inForce, nil, ""},
		"the first commit":           {Source{}, inForce, []string{"Normal CommitInForce Commit 0123456789ab (first) is in force"}, one.Hash},
		"a new commit":               {inForce, Source{Newest: two, InForce: two}, []string{"Normal CommitInForce Commit fedcba987654 (no subject) is in force"}, two.Hash},
		"a short hash":               {Source{}, Source{Newest: commit("v1", "x"), InForce: commit("v1", "x")}, []string{"Normal CommitInForce Commit v1 (x) is in force"}, "v1"},
		"the remote is unreadable":   {inForce, unreadable(inForce), []string{"Warning FetchFailed The repository cannot be read: timeout"}, ""},
		"it stays unreadable":        {unreadable(inForce), unreadable(inForce), nil, ""},
		"it can be read again":       {unreadable(inForce), inForce, []string{"Normal FetchSucceeded The repository can be read again"}, ""},
		"a commit is refused":        {inForce, refusedTwo, []string{refusedText}, two.Hash},
		"it is still refused":        {refusedTwo, refusedTwo, nil, ""},
		"for another reason":         {Source{Newest: two, InForce: one, LoadError: "too large"}, refusedTwo, []string{refusedText}, two.Hash},
		"it cannot be loaded":        {inForce, Source{Newest: two, InForce: one, LoadError: "too large", Problems: broken}, []string{"Warning CommitRefused Commit fedcba987654 (no subject) is refused, and the last good one stays in force: too large"}, two.Hash},
		"the first one is refused":   {Source{}, Source{Newest: two, Problems: broken}, []string{"Warning CommitRefused Commit fedcba987654 (no subject) is refused, and no commit is in force yet: a.yaml:2: not YAML"}, two.Hash},
		"warnings refuse no commits": {Source{}, Source{Newest: one, InForce: one, Warnings: broken}, []string{"Normal CommitInForce Commit 0123456789ab (first) is in force"}, one.Hash},
	} {
		t.Run(name, func(t *testing.T) {
			got := sourceEvents(test.was, test.is, noon)
			if !slices.Equal(short(got), test.want) {
				t.Fatalf("events %q\nwant %q", short(got), test.want)
			}
			for _, e := range got {
				if e.About() != "repository/hub" || e.Commit != test.commit {
					t.Errorf("event %+v", e)
				}
			}
		})
	}
}

// After a restart, the events are those since the state that the ledger had saved, however old the last event about it is.
func TestEventsSinceTheStateOfTheLedger(t *testing.T) {
	l, web := ledger.New(), ledger.Subject{Placement: api.PlacementKey{Name: "web"}}
	l.SetInForce("c1")
	l.Suspend(ledger.Suspension{Subject: web, By: "jo", Until: noon})
	m := NewMemo()
	m.Restore(l)
	build := func(commit string, now time.Time) []string {
		in := Source{Newest: hub.Commit{Hash: commit}, InForce: hub.Commit{Hash: commit}}
		r := m.Build(Input{Plan: &plan.Plan{}, Ledger: l, Source: in, Now: now})
		return short(r.Events)
	}
	for _, commit := range []string{"", "c1"} { // the first report is made before a commit is loaded
		if got := build(commit, noon.Add(-time.Second)); len(got) > 0 {
			t.Errorf("with the commit %q nothing has changed, and there are the events %q", commit, got)
		}
	}
	m = NewMemo()
	m.Restore(l)
	want := []string{"Normal CommitInForce Commit c2 (no subject) is in force", "Normal Resumed crp/web is no longer suspended"}
	if got := build("c2", noon); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// short returns the type, the reason and the message of events.
func short(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Type+" "+e.Reason+" "+e.Message)
	}
	return out
}
