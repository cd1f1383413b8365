package ledger

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

var deployment = api.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}

// The text of a suspension says what is suspended, by whom, until when and why.
func TestSuspensionsSayWhatTheyAre(t *testing.T) {
	until := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		s             Suspension
		subject, text string
	}{
		"a placement":        {Suspension{Subject: Subject{Placement: web}, By: "alice"}, web.String(), "suspended by alice"},
		"on a cluster":       {Suspension{Subject: Subject{Placement: web, Cluster: "east"}, By: "alice", Reason: "INC-1"}, web.String() + " on east", "suspended by alice: INC-1"},
		"a cluster":          {Suspension{Subject: Subject{Cluster: "east"}, By: "alice", Until: until}, "cluster/east", "suspended by alice until 2026-01-31T14:00:00Z"},
		"an object":          {Suspension{Subject: Subject{Object: deployment, Cluster: "east"}, By: "bob", Until: until, Reason: "INC-2"}, "Deployment.apps/shop/web on east", "suspended by bob until 2026-01-31T14:00:00Z: INC-2"},
		"an object anywhere": {Suspension{Subject: Subject{Object: deployment}, By: "bob"}, "Deployment.apps/shop/web on every cluster", "suspended by bob"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.s.Subject.String(); got != test.subject {
				t.Errorf("subject %q, want %q", got, test.subject)
			}
			if got := test.s.String(); got != test.text {
				t.Errorf("text %q, want %q", got, test.text)
			}
		})
	}
}

// A suspension ends exactly at its time, one without an end never does, and a new suspension of
// the same subject replaces the old one.
func TestSuspensionsEnd(t *testing.T) {
	l := New()
	l.Suspend(Suspension{Subject: Subject{Cluster: "east"}, By: "alice", Until: at(1)})
	l.Suspend(Suspension{Subject: Subject{Cluster: "east"}, By: "bob", Until: at(2)})
	l.Suspend(Suspension{Subject: Subject{Cluster: "west"}, By: "alice"})
	if ended := l.ExpiredSuspensions(at(2).Add(-1)); len(ended) != 0 {
		t.Errorf("before its time %v", ended)
	}
	if ended := l.ExpiredSuspensions(at(2)); len(ended) != 1 || ended[0].By != "bob" || !l.Resume(ended[0].Subject, at(2)) {
		t.Errorf("at its time %v", ended)
	}
	if left := l.Suspensions(); len(left) != 1 || left[0].Cluster != "west" || len(l.ExpiredSuspensions(at(9999))) != 0 {
		t.Errorf("left %v", left)
	}
	if !l.Resume(Subject{Cluster: "west"}, at(3)) || l.Resume(Subject{Cluster: "west"}, at(3)) {
		t.Error("what is resumed is resumed once")
	}
}

// Resuming a rollout is recorded with the placement, and changes its version, so that it is
// planned again.
func TestProceed(t *testing.T) {
	l := bound()
	before := l.Placement(web).Version()
	l.ResumeRollout(web, at(5))
	if p := l.Placement(web); p.Resumed != at(5) || p.Version() == before || p.Entry("east") == nil {
		t.Errorf("after it: %+v", p)
	}
	l.ResumeRollout(api.PlacementKey{Name: "unknown"}, at(5)) // has no effect
}
