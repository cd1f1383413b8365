package ledger

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A deletion that is reported several times leads to one event, also across a restart.
func TestADeletionIsNewsOnce(t *testing.T) {
	key, at := api.PlacementKey{Name: "web"}, time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	deleted := func(second int, names ...string) Deletion {
		d := Deletion{At: at.Add(time.Duration(second) * time.Second), Commit: "c2", Why: "the placement was deleted", Total: len(names)}
		for _, name := range names {
			d.Objects = append(d.Objects, api.ID{Kind: "ConfigMap", Namespace: "web", Name: name})
		}
		return d
	}
	l, store := New(), Memory()
	l.SetPlacement(key, Placement{})
	l.Bind(key, placement.Binding{Cluster: "east"})
	report := func(second int, deletions ...Deletion) string {
		t.Helper()
		was := l.Placement(key).Entry("east").Seen
		told := l.Fold(WorkSeen{Cluster: "east", Placement: key, At: at.Add(time.Duration(second) * time.Second), Deletions: deletions})
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
	l.Fold(ClusterSeen{Cluster: "east", At: at(0), Healthy: true})
	l.SetPlacement(key, Placement{})
	l.Bind(key, placement.Binding{Cluster: "east", Assigned: revision, AssignedAt: at(1)})
	report := func(second int) bool {
		return l.Fold(WorkSeen{Cluster: "east", Placement: key, At: at(second), Revision: revision, Done: true})
	}
	if !report(2) || report(3) {
		t.Error("only the first report about an assignment is news")
	}
	l.Fold(ClusterSeen{Cluster: "east", At: at(4), Error: "no answer"})
	l.Fold(ClusterSeen{Cluster: "east", At: at(5), Healthy: true})
	if !report(6) || report(7) {
		t.Error("only the first report after the cluster was unreachable is news")
	}
}

// The deletions of a report that was never folded are added to the next report. If there
// are too many, the oldest are dropped.
func TestReportsCarryDeletionsOn(t *testing.T) {
	some := func(from, n int) (out []Deletion) {
		for i := range n {
			out = append(out, Deletion{Total: from + i})
		}
		return out
	}
	tests := map[string]struct {
		earlier, later, want []Deletion
	}{
		"nothing":  {nil, nil, nil},
		"earlier":  {some(1, 2), nil, some(1, 2)},
		"both":     {some(1, 2), some(3, 1), some(1, 3)},
		"too many": {some(1, MostDeletions), some(MostDeletions+1, 2), some(3, MostDeletions)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := WorkSeen{Deletions: test.later}.After(WorkSeen{Deletions: test.earlier}).Deletions
			if !equalities.DeepEqual(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// Records of earlier versions have the lists of what is not deleted beside the other fields, and most have none.
func TestUndeletedIsReadAsItWasWritten(t *testing.T) {
	for text, want := range map[string]int{`{"Cluster":"east","Total":3}`: 0, `{"Cluster":"east","Lingering":[{"Kind":"Namespace","Name":"web"}],"Total":3}`: 1} {
		var w WorkSeen
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Remaining().Lingering) != want || (w.Undeleted == nil) != (want == 0) {
			t.Errorf("%s is read as %+v", text, w)
		}
		again, err := json.Marshal(w)
		if err != nil || strings.Contains(string(again), "Lingering") != (want > 0) || strings.Contains(string(again), "Undeleted") {
			t.Errorf("%s is written as %s, %v", text, again, err)
		}
	}
	var none *WorkSeen
	if len(none.Remaining().Waiting) != 0 || (Undeleted{}).OrNil() != nil || (Undeleted{Lingering: []api.ID{{}}}).OrNil() == nil {
		t.Error("an empty list of what is not deleted is kept")
	}
}
