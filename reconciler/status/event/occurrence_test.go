package event

import (
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
)

// What happens to the repository is an event about it, and what happens to a suspension one about what is suspended.
func TestEventsOfOccurrences(t *testing.T) {
	commit := func(e history.Event, message, subject string) occurrence.Occurrence {
		return occurrence.Occurrence{Entry: history.Entry{Kind: history.Commit, Event: e, Commit: "0123456789abcdef", Subject: subject, Message: message}}
	}
	refused := commit(history.Refused, "a.yaml:2: not YAML", "")
	instead := refused
	instead.StaysInForce = "c1"
	suspended := func(s ledger.Subject) occurrence.Occurrence {
		return occurrence.Occurrence{Suspended: &ledger.Suspension{Subject: s, By: "jo", Reason: "INC-1"}}
	}
	web := ledger.Subject{Placement: api.PlacementKey{Name: "web"}}
	for want, o := range map[string]occurrence.Occurrence{
		"repository/hub Warning FetchFailed The repository cannot be read: timeout":                                                                                    {Unreadable: "timeout"},
		"repository/hub Warning CommitRefused The newest commit is not accepted, and no commit is in force yet: commit c2: not signed":                                 {NotAccepted: "commit c2: not signed"},
		"repository/hub Warning CommitRefused The newest commit is not accepted, and the last good one stays in force: commit c2: not signed":                          {NotAccepted: "commit c2: not signed", StaysInForce: "c1"},
		"repository/hub Normal FetchSucceeded The repository can be read again":                                                                                        {Readable: true},
		"repository/hub @0123456789abcdef Normal CommitInForce Commit 0123456789ab (first) is in force":                                                                commit(history.InForce, "", "first"),
		"repository/hub @0123456789abcdef Warning CommitRefused Commit 0123456789ab (no subject) is refused, and no commit is in force yet: a.yaml:2: not YAML":        refused,
		"repository/hub @0123456789abcdef Warning CommitRefused Commit 0123456789ab (no subject) is refused, and the last good one stays in force: a.yaml:2: not YAML": instead,
		"crp/web Normal Suspended crp/web is suspended by jo: INC-1":                                                                                                   suspended(web),
		"crp/web on east Normal Suspended crp/web on east is suspended by jo: INC-1":                                                                                   suspended(ledger.Subject{Placement: web.Placement, Cluster: "east"}),
		"cluster/east on east Normal Suspended cluster/east is suspended by jo: INC-1":                                                                                 suspended(ledger.Subject{Cluster: "east"}),
		"repository/hub Normal Suspended ConfigMap/web/one on every cluster is suspended by jo: INC-1":                                                                 suspended(ledger.Subject{Object: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}}),
		"repository/hub Normal Suspended the fleet is frozen by jo: INC-1":                                                                                             suspended(ledger.Subject{Effect: ledger.Freezes}),
		"crp/web Normal Resumed crp/web is no longer suspended":                                                                                                        {Resumed: &ledger.Suspension{Subject: web}},
		"": {Entry: history.Entry{Kind: history.Cluster, Event: history.Available, Placement: "crp/web", Cluster: "east"}},
	} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var got []string
		for _, e := range Of([]occurrence.Occurrence{o}, ledger.New(), now) {
			text := e.About()
			if e.Cluster != "" {
				text += " on " + e.Cluster
			}
			if e.Commit != "" {
				text += " @" + e.Commit
			}
			if got = append(got, text+" "+e.Type+" "+e.Reason+" "+e.Message); e.Count != 1 || !e.Last.Equal(now) {
				t.Errorf("%s: %d times, last %s", e.Message, e.Count, e.Last)
			}
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
	// the object of the event is the placement that the ledger knows
	l := ledger.New()
	l.SetPlacement(web.Placement, ledger.Placement{Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	all := []occurrence.Occurrence{suspended(web)}
	if known, unknown := Of(all, l, time.Time{})[0].UID, Of(all, ledger.New(), time.Time{})[0].UID; known == unknown {
		t.Error("a placement that was created has the UID of one that is not known")
	}
}
