package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	web  = api.PlacementKey{Name: "web"}
	quay = api.PlacementKey{Namespace: "docks", Name: "quay"}
)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func v(n int) placement.Revision {
	return placement.Revision{Commit: fmt.Sprintf("commit-%d", n), Hash: fmt.Sprintf("hash-%d", n)}
}

// bound returns a ledger in which web has held east and west at v1 since noon.
func bound() *Ledger {
	l := New()
	l.SetPlacement(web, Placement{Generation: 1})
	for _, c := range []string{"east", "west"} {
		l.Bind(web, placement.Binding{Cluster: c, Assigned: v(1), AssignedAt: noon})
	}
	return l
}

// fine returns a report that a revision is completely applied and available.
func fine(cluster string, n int, minute int) protocol.WorkSeen {
	return protocol.WorkSeen{Cluster: cluster, Placement: web, At: at(minute), WorkState: protocol.WorkState{Revision: v(n), Done: true, Total: 2}}
}

// failing returns a report that one object of a revision is not applied.
func failing(cluster string, n int, minute int) protocol.WorkSeen {
	w := fine(cluster, n, minute)
	w.Exceptions = []protocol.ObjectState{{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}}}
	return w
}

// dump returns the content of a ledger as text.
func dump(t testing.TB, l *Ledger) string {
	t.Helper()
	var b strings.Builder
	line := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", key, raw)
	}
	line("head", l.InForce())
	line("fleet", l.fleet)
	for _, name := range l.Clusters() {
		line(name, l.Cluster(name))
	}
	for _, s := range l.Suspensions() {
		line(s.Subject.String(), s)
	}
	for _, id := range slices.SortedFunc(maps.Keys(l.Declared()), api.ID.Compare) {
		line(id.String(), l.Declared()[id])
	}
	for i := range l.Events() {
		line("event", l.Events()[i])
	}
	for _, key := range l.Placements() {
		p := l.Placement(key)
		line(key.String(), p)
		for _, e := range p.Entries() {
			line(key.String()+" on "+e.Binding.Cluster, e)
		}
	}
	return b.String()
}

// AvailableSince is the time of the first in a row of reports that the assigned content is
// available.
func TestAvailableSince(t *testing.T) {
	l := bound()
	steps := []struct {
		what string
		do   func()
		want time.Time
	}{
		{"available", func() { l.Fold(fine("east", 1, 1)) }, at(1)},
		{"still available", func() { l.Fold(fine("east", 1, 2)) }, at(1)},
		{"one object fails", func() { l.Fold(failing("east", 1, 3)) }, time.Time{}},
		{"mended", func() { l.Fold(fine("east", 1, 4)) }, at(4)},
		{"a word on another revision", func() { l.Fold(fine("east", 9, 5)) }, time.Time{}},
		{"available again", func() { l.Fold(fine("east", 1, 6)) }, at(6)},
		{"assigned anew", func() {
			l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), AssignedAt: at(7)})
		}, time.Time{}},
	}
	for _, s := range steps {
		s.do()
		if got := l.Placement(web).Entry("east").AvailableSince(); !got.Equal(s.want) {
			t.Errorf("%s: available since %s, want %s", s.what, got, s.want)
		}
	}
}

// UnavailableSince is the time of the first report that the content is not available. It is
// kept, also across a restart, until the content is available or other content is assigned.
func TestUnavailableSince(t *testing.T) {
	l, store := bound(), Memory()
	slow := func(version, second int) protocol.WorkSeen {
		w := fine("east", version, second)
		w.Exceptions = []protocol.ObjectState{{ID: api.ID{Kind: "Pod", Name: "slow"}, Applied: protocol.Verdict{OK: true}}}
		return w
	}
	begun := func(second int) protocol.WorkSeen { w := slow(1, second); w.Done = false; return w }
	steps := []struct {
		what string
		do   func()
		want time.Time
	}{
		{"being applied", func() { l.Fold(begun(1)) }, time.Time{}},
		{"applied, and slow", func() { l.Fold(slow(1, 2)) }, at(2)},
		{"still slow", func() { l.Fold(slow(1, 3)) }, at(2)},
		{"after a restart", func() {
			if err := store.Save(l); err != nil {
				t.Fatal(err)
			}
			l, _ = store.Load()
			if l.Placement(web).Entry("east").Reported() {
				t.Error("a word from before the restart counts as heard")
			}
		}, at(2)},
		{"slow after the restart", func() {
			if !l.Fold(slow(1, 4)) || !l.Placement(web).Entry("east").Reported() {
				t.Error("the first word after a restart is no news")
			}
		}, at(2)},
		{"a word on another revision", func() { l.Fold(slow(9, 5)) }, at(2)},
		{"available", func() { l.Fold(fine("east", 1, 6)) }, time.Time{}},
		{"slow again", func() { l.Fold(slow(1, 7)) }, at(7)},
		{"assigned anew", func() {
			l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), AssignedAt: at(8)})
		}, time.Time{}},
	}
	for _, s := range steps {
		s.do()
		if got := l.Placement(web).Entry("east").Unusual().UnavailableSince; !got.Equal(s.want) {
			t.Errorf("%s: unavailable since %s, want %s", s.what, got, s.want)
		}
	}
}

// A report from a comparison only does not make the content available.
func TestAComparisonDoesNotCountAsAvailable(t *testing.T) {
	l := bound()
	compared := fine("east", 1, 1)
	compared.Compared = true
	l.Fold(compared)
	if since := l.Placement(web).Entry("east").AvailableSince(); !since.IsZero() {
		t.Errorf("compared, and available since %s", since)
	}
	if !l.Fold(fine("east", 1, 2)) {
		t.Error("an observation of what is applied is no news after a comparison")
	}
	if since := l.Placement(web).Entry("east").AvailableSince(); !since.Equal(at(2)) {
		t.Errorf("available since %s, want %s", since, at(2))
	}
}

// The report that a placement was removed counts for the removal that it was about, and not for
// a later one.
func TestRemovedIsOfOneRemoval(t *testing.T) {
	l := bound()
	removing := placement.Binding{Cluster: "east", Assigned: v(1), AssignedAt: noon, Unscheduled: true, Removing: true}
	gone := protocol.WorkSeen{Cluster: "east", Placement: web, At: at(1), WorkState: protocol.WorkState{Revision: v(1), Removed: true}}

	if l.Fold(gone) {
		t.Error("nobody asked for a removal, and its end was believed")
	}
	l.Bind(web, removing)
	if !l.Fold(gone) || !l.Placement(web).Entry("east").Seen.Removed {
		t.Error("the end of the removal was not taken in")
	}
	l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), AssignedAt: at(2)})
	if seen := l.Placement(web).Entry("east").Seen; seen != nil {
		t.Errorf("chosen anew, and still said to hold nothing: %+v", seen)
	}
	l.Bind(web, removing)
	if seen := l.Placement(web).Entry("east").Seen; seen != nil {
		t.Errorf("removed a second time, and said to be done at once: %+v", seen)
	}
}

// A new assignment keeps what the cluster claims and when its conditions changed, and drops reports about earlier content.
func TestBindKeepsWhatItDoesNotChange(t *testing.T) {
	l := bound()
	for second, complete := range []bool{true, false} {
		l.Fold(protocol.WorkSeen{Cluster: "east", Placement: web, At: at(second), WorkState: protocol.WorkState{Revision: v(1), Done: complete}})
	}
	if l.Placement(web).Entry("east").Unusual().LastComplete == nil {
		t.Fatal("the last complete report is not kept")
	}
	claims := Deviation{Yields: []Yield{{ID: api.ID{Kind: "Namespace", Name: "web"}, To: quay}}}
	l.SetDeviation(web, "east", claims, at(1))
	l.SetTransitions(web, "east", map[string]Transition{"Applied": {"True", at(1)}})
	l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), AssignedAt: at(2)})
	e := l.Placement(web).Entry("east")
	if e.Unusual().LastComplete != nil || !e.Unusual().Deviation.Equal(claims) || e.Transitions["Applied"].Time != at(1) {
		t.Errorf("after an assignment: %+v", e)
	}
	l.SetDeviation(web, "nowhere", claims, at(1)) // has no effect
	if l.Placement(web).Entry("nowhere") != nil {
		t.Error("a claim made a binding")
	}
}

// The version of a placement changes with everything except the times of conditions, since
// caches depend on it.
func TestVersionMovesWithWhatAPlanCouldSee(t *testing.T) {
	l := bound()
	moves := func(what string, want bool, change func()) {
		t.Helper()
		before := l.Placement(web).Version()
		change()
		if got := l.Placement(web).Version() != before; got != want {
			t.Errorf("%s: version moved %t, want %t", what, got, want)
		}
	}
	moves("bound", true, func() { l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2), AssignedAt: at(1)}) })
	moves("seen before it was assigned", true, func() { l.Fold(fine("east", 2, 0)) })
	moves("seen", true, func() { l.Fold(fine("east", 2, 2)) })
	moves("seen again", false, func() { l.Fold(fine("east", 2, 3)) })
	moves("seen otherwise", true, func() { l.Fold(failing("east", 2, 4)) })
	moves("failing as before", false, func() { l.Fold(failing("east", 2, 5)) })
	moves("a condition changed", false, func() { l.SetTransitions(web, "east", map[string]Transition{"Applied": {"False", at(5)}}) })
	moves("claimed", true, func() {
		l.SetDeviation(web, "east", Deviation{Early: []api.ID{{Kind: "Namespace", Name: "web"}}}, at(1))
	})
	moves("noted", true, func() { l.SetPlacement(web, Placement{Generation: 2}) })
	moves("unbound", true, func() { l.Unbind(web, "east") })
	moves("forgotten and noted anew", true, func() {
		l.Forget(web)
		l.SetPlacement(web, Placement{Generation: 1})
	})
}

// A verdict without a time gets the time of the first in a row of reports with the same
// verdict.
func TestFailuresKeepTheirTime(t *testing.T) {
	l := bound()
	since := func() time.Time { return l.Placement(web).Entry("east").Seen.Exceptions[0].Applied.Since }
	l.Fold(failing("east", 1, 1))
	l.Fold(failing("east", 1, 2))
	if got := since(); got != at(1) {
		t.Errorf("failing since %s, want %s", got, at(1))
	}
	l.Fold(fine("east", 1, 3))
	l.Fold(failing("east", 1, 4))
	if got := since(); got != at(4) {
		t.Errorf("failing since %s, want %s", got, at(4))
	}

	late := fine("east", 1, 5)
	late.Exceptions = []protocol.ObjectState{{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: "NotYet"}}}
	l.Fold(late)
	if got := l.Placement(web).Entry("east").Seen.Exceptions[0].Available.Since; got != at(5) {
		t.Errorf("not available since %s, want %s: before that it was not even applied", got, at(5))
	}
}

// Decisions are urgent to save; observations and the times of conditions are not.
func TestDecisionsPress(t *testing.T) {
	tests := map[string]struct {
		do       func(*Ledger)
		pressing bool
	}{
		"a cluster was seen": {func(l *Ledger) { l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(1), Healthy: true}) }, false},
		"work was seen":      {func(l *Ledger) { l.Fold(fine("east", 1, 1)) }, false},
		"a drift was put back": {func(l *Ledger) {
			o := fine("east", 1, 1)
			o.Incidents = &protocol.Incidents{Drifts: []protocol.Drift{{State: api.DriftRepaired, Count: 1}}}
			l.Fold(o)
		}, true},
		"a condition changed": {func(l *Ledger) { l.SetTransitions(web, "east", map[string]Transition{"Applied": {"True", noon}}) }, false},
		"a lost placement is there": {func(l *Ledger) {
			l.Fold(protocol.ClusterSeen{Cluster: "east", At: at(1), Inventories: []protocol.InventorySeen{{Placement: quay}}})
		}, true},
		"a commit is in force": {func(l *Ledger) { l.SetInForce("v2") }, true},
		"a placement is noted": {func(l *Ledger) { l.SetPlacement(web, Placement{Generation: 2}) }, true},
		"a cluster is bound":   {func(l *Ledger) { l.Bind(web, placement.Binding{Cluster: "east", Assigned: v(2)}) }, true},
		"content was available": {func(l *Ledger) {
			b := l.Placement(web).Entry("east").Binding
			b.WasAvailable, b.Risked = !b.WasAvailable, !b.Risked
			l.Bind(web, b)
		}, true},
		"a cluster is let go":      {func(l *Ledger) { l.Unbind(web, "east") }, true},
		"a placement is forgotten": {func(l *Ledger) { l.Forget(web) }, true},
		"a cluster is suspended":   {func(l *Ledger) { l.Suspend(Suspension{Subject: Subject{Cluster: "east"}, Reason: "no"}) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, store := bound(), Memory()
			if err := store.Save(l); err != nil {
				t.Fatal(err)
			}
			if l.Urgent() || l.Unsaved() {
				t.Fatal("something is to be saved right after a save")
			}
			test.do(l)
			if !l.Unsaved() || l.Urgent() != test.pressing {
				t.Errorf("unsaved %t, pressing %t", l.Unsaved(), l.Urgent())
			}
		})
	}
}

// A rollout goes on from its start to its end.
func TestRollingOut(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		p    Placement
		want bool
	}{
		"not yet": {Placement{}, false}, "started": {Placement{RolloutStarted: at}, true},
		"finished": {Placement{RolloutStarted: at, RolloutFinished: at.Add(time.Second)}, false},
	} {
		if got := test.p.RollingOut(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A content came into force no later than the next one that was recorded.
func TestRevisedAt(t *testing.T) {
	p := Placement{Revisions: []Revised{{Index: 3, At: time.Unix(300, 0)}, {Index: 5, At: time.Unix(500, 0)}}}
	for index, want := range map[int]time.Time{0: time.Unix(300, 0), 3: time.Unix(300, 0), 4: time.Unix(500, 0), 5: time.Unix(500, 0), 6: {}} {
		if got := p.RevisedAt(index); !got.Equal(want) {
			t.Errorf("the content %d came at %s, want %s", index, got, want)
		}
	}
}

// An agent gets the drifts of its cluster, by placement, and nothing of placements without any.
func TestDriftsOfACluster(t *testing.T) {
	l, web, quiet := New(), api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "quiet"}
	d := protocol.Drift{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, State: api.DriftHeld}
	for _, key := range []api.PlacementKey{web, quiet} {
		l.SetPlacement(key, Placement{Generation: 1})
		for _, cluster := range []string{"east", "west"} {
			l.Bind(key, placement.Binding{Cluster: cluster})
		}
	}
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: web, At: time.Unix(1, 0), WorkState: protocol.WorkState{Incidents: &protocol.Incidents{Drifts: []protocol.Drift{d}}}})
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: quiet, At: time.Unix(1, 0)})
	if got := l.Drifts("east"); len(got) != 1 || len(got[web]) != 1 || got[web][0].ID != d.ID {
		t.Errorf("east: %+v", got)
	}
	if got := l.Drifts("west"); len(got) != 0 {
		t.Errorf("west: %+v", got)
	}
}
