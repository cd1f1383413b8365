package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A deletion that is reported several times leads to one event, also across a restart.
func TestADeletionIsNewsOnce(t *testing.T) {
	key, at := api.PlacementKey{Name: "web"}, time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	deleted := func(second int, names ...string) protocol.Deletion {
		d := protocol.Deletion{At: at.Add(time.Duration(second) * time.Second), Commit: "c2", Why: "the placement was deleted", Total: len(names)}
		for _, name := range names {
			d.Objects = append(d.Objects, api.ID{Kind: "ConfigMap", Namespace: "web", Name: name})
		}
		return d
	}
	l, store := New(), Memory()
	l.SetPlacement(key, Placement{})
	l.Bind(key, placement.Binding{Cluster: "east"})
	report := func(second int, deletions ...protocol.Deletion) string {
		t.Helper()
		was := l.Placement(key).Entry("east").Seen
		told := l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: at.Add(time.Duration(second) * time.Second), WorkState: protocol.WorkState{Incidents: &protocol.Incidents{Deletions: deletions}}})
		news := l.Placement(key).Entry("east").Seen.Deleted(was)
		if len(news) > 0 && !told {
			t.Error("a deletion is news, and the report that has it is not")
		}
		return fmt.Sprint(len(news))
	}
	steps := []struct{ got, want string }{
		{report(1, deleted(0, "one")), "1"},
		{report(2, deleted(0, "one"), deleted(1, "two")), "1"},
		{report(3, deleted(0, "one"), deleted(1, "two")), "0"},
	}
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	var err error
	if l, err = store.Load(); err != nil {
		t.Fatal(err)
	}
	steps = append(steps, []struct{ got, want string }{
		{report(4, deleted(0, "one"), deleted(1, "two")), "0"},
		{report(5), "0"},
		{report(6, deleted(6, "one")), "1"},
	}...)
	for i, step := range steps {
		if step.got != step.want {
			t.Errorf("report %d has %s new deletions, want %s", i+1, step.got, step.want)
		}
	}
}

// The first report about an assignment is news even if it says the same as the one before, and so is the first one after
// the cluster was unreachable: what waits for a report goes on.
func TestTheFirstReportIsNews(t *testing.T) {
	key, start := api.PlacementKey{Name: "web"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	revision := placement.Revision{Commit: "c1", Hash: "1"}
	l := New()
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(0), Healthy: true})
	l.SetPlacement(key, Placement{})
	l.Bind(key, placement.Binding{Cluster: "east", Assigned: revision, AssignedAt: at(1)})
	report := func(second int) bool {
		return l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: at(second), WorkState: protocol.WorkState{Revision: revision, Done: true}})
	}
	if !report(2) || report(3) {
		t.Error("only the first report about an assignment is news")
	}
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(4), Error: "no answer"})
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(5), Healthy: true})
	if !report(6) || report(7) {
		t.Error("only the first report after the cluster was unreachable is news")
	}
}
