package ledger

import (
	"reflect"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var ten = time.Date(2025, 3, 4, 10, 0, 0, 0, time.UTC)

// restarted returns a loaded ledger with one placement on one cluster and these recorded times.
func restarted(t *testing.T, assigned, said, resumed time.Time) (*Ledger, api.PlacementKey) {
	t.Helper()
	key, store, l := api.PlacementKey{Name: "web"}, Memory(), New()
	l.SetPlacement(key, Placement{Resumed: resumed})
	l.Bind(key, placement.Binding{Cluster: "east", Assigned: placement.Revision{Commit: "v1", Hash: "h1"}, AssignedAt: assigned})
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: said, Healthy: true})
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: said, WorkState: protocol.WorkState{Revision: placement.Revision{Hash: "h1"}, Done: true}})
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	l, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	return l, key
}

// If the clock was ahead when the ledger was saved, new observations must still be accepted
// after it was set back.
func TestWhatIsSaidAfterTheClockWasSetBackIsHeard(t *testing.T) {
	l, key := restarted(t, ten, ten.Add(time.Second), time.Time{})
	now := ten.Add(-2 * time.Hour)
	l.Rebase(now)
	if !l.Fold(protocol.ClusterSeen{Cluster: "east", At: now.Add(time.Second), Error: "no answer"}) || l.Cluster("east").Healthy {
		t.Error("that the cluster does not answer is not heard")
	}
	if got := l.Cluster("east").Since; !got.Equal(now.Add(time.Second)) {
		t.Errorf("it has not answered since %s, want %s", got, now.Add(time.Second))
	}
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: now.Add(time.Second), WorkState: protocol.WorkState{Revision: placement.Revision{Hash: "h1"}}})
	if e := l.Placement(key).Entry("east"); e.Seen.Done || e.Binding.AssignedAt.After(now) {
		t.Errorf("what it says of web is not heard: %+v", e)
	}
}

// The order of recorded events is kept, however far ahead the clock was: a report from before
// an assignment does not count for it, and neither does a user's command from before a failure.
func TestSettingTheClockBackKeepsTheOrderOfWhatHappened(t *testing.T) {
	for name, test := range map[string]struct{ assigned, said, resumed time.Duration }{
		"said before":    {2, 1, 3},
		"said after":     {1, 2, 3},
		"resumed before": {2, 3, 1},
		"at once":        {1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(d time.Duration) time.Time { return ten.Add(d * time.Second) }
			l, key := restarted(t, at(test.assigned), at(test.said), at(test.resumed))
			now := ten.Add(-time.Hour)
			l.Rebase(now)
			p := l.Placement(key)
			e := p.Entry("east")
			if got, want := e.SeenAt().Compare(e.Binding.AssignedAt), at(test.said).Compare(at(test.assigned)); got != want {
				t.Errorf("said and assigned compare as %d, want %d", got, want)
			}
			if got, want := p.Resumed.Compare(e.Binding.AssignedAt), at(test.resumed).Compare(at(test.assigned)); got != want {
				t.Errorf("resumed and assigned compare as %d, want %d", got, want)
			}
			for _, got := range []time.Time{e.SeenAt(), e.Binding.AssignedAt, p.Resumed} {
				if got.After(now) || now.Sub(got) > time.Microsecond {
					t.Errorf("%s is not just before %s", got, now)
				}
			}
		})
	}
}

// Times in the past are neither changed nor saved again.
func TestRebasingChangesNothingThatLiesInThePast(t *testing.T) {
	l, key := restarted(t, ten, ten.Add(time.Second), time.Time{})
	l.Rebase(time.Now())
	p := l.Placement(key)
	if e := p.Entry("east"); !e.Binding.AssignedAt.Equal(ten) || !e.SeenAt().Equal(ten.Add(time.Second)) || !p.Resumed.IsZero() || len(l.dirty) > 0 {
		t.Errorf("%+v, resumed at %s, to be saved: %v", e, p.Resumed, l.dirty)
	}
}

// Recorded events stay older than new ones, in their order, and are saved so.
func TestSettingTheClockBackKeepsTheOrderOfEvents(t *testing.T) {
	l, store := New(), Memory()
	l.SetEvents(AppendEvents(nil, []Event{
		{Kind: "Repository", Name: "hub", Reason: "first", First: ten, Last: ten, Count: 1},
		{Kind: "Repository", Name: "hub", Reason: "second", First: ten.Add(time.Second), Last: ten.Add(time.Second), Count: 1},
	}))
	now := ten.Add(-time.Hour)
	l.Rebase(now)
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	again, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, events := range map[string][]Event{"at once": l.Events(), "read again": again.Events()} {
		if len(events) != 2 || events[0].Reason != "first" || events[1].Last.Before(events[0].Last) || events[1].Last.After(now) {
			t.Errorf("%s: %+v", name, events)
		}
	}
}

// The times of update runs are moved as well: a run that starts after the clock was set back is newer than one from before that, and a
// stage that waits does not wait until the old time. The runs that others read are not changed.
func TestSettingTheClockBackKeepsTheOrderOfRuns(t *testing.T) {
	l, key := New(), api.PlacementKey{Name: "web"}
	stage := placement.RunStage{StageConfig: api.StageConfig{Name: "canary"}, Gates: []placement.RunGate{{Name: "bake"}}}
	runs := []placement.Run{{Name: "one", Stages: []placement.RunStage{stage}}, {Name: "two"}}
	if got, want := len(runs[0].Times()), timesIn(reflect.TypeFor[placement.Run]())+timesIn(reflect.TypeFor[placement.RunStage]())+timesIn(reflect.TypeFor[placement.RunGate]()); got != want {
		t.Fatalf("a run has %d times, and %d of them are moved", want, got)
	}
	for i := range runs {
		for _, at := range runs[i].Times() {
			*at = ten.Add(time.Duration(i) * time.Minute)
		}
	}
	l.SetPlacement(key, Placement{Runs: runs})
	now := ten.Add(-time.Hour)
	l.Rebase(now)
	for i, r := range l.Placement(key).Runs {
		for _, at := range r.Times() {
			if want := now.Add(time.Duration(i - 1)); !at.Equal(want) {
				t.Errorf("a time of run %s was moved to %s, want %s", r.Name, at, want)
			}
		}
	}
	if !runs[0].Started.Equal(ten) || !runs[0].Stages[0].Gates[0].Since.Equal(ten) {
		t.Error("a run that others read was changed")
	}
}

// timesIn counts the times in a type, also in the structs in it that are neither in lists nor behind pointers.
func timesIn(t reflect.Type) (n int) {
	for field := range t.Fields() {
		switch {
		case field.Type == reflect.TypeFor[time.Time]():
			n++
		case field.Type.Kind() == reflect.Struct:
			n += timesIn(field.Type)
		}
	}
	return n
}

// Every time on which a decision depends is moved if it is in the future: later ones stay later,
// and equal ones equal. The records that others read are not changed, and what is planned for the
// future stays.
func TestRebaseMovesEveryTimeOfADecision(t *testing.T) {
	l := New()
	key := api.PlacementKey{Name: "web"}
	l.SetPlacement(key, Placement{Revisions: []Revised{{Index: 1}, {Index: 2}}})
	l.Bind(key, placement.Binding{Cluster: "east"})
	l.Fold(protocol.ClusterSeen{Cluster: "east", At: ten})
	l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: ten})
	l.Placement(key).Entry("east").Circumstances = &Circumstances{}
	until := Suspension{Subject: Subject{Cluster: "east"}, Since: ten, Until: ten.Add(time.Hour)}
	l.Suspend(until)
	l.SetEvents([]Event{{Kind: "Repository", Name: "hub", First: ten, Last: ten, Count: 1}})
	times := 0
	eachTime(l, func(_ string, t *time.Time) {
		*t = ten.Add(time.Duration(times%5) * time.Minute)
		times++
	})
	if times != 5+6+9+1+2 {
		t.Fatalf("there are %d times", times)
	}
	c, p, e, events := l.Cluster("east"), l.Placement(key), l.Placement(key).Entry("east"), l.Events()
	event := events[0]
	cluster, record, entry, revised := *c, *p, e.Times(), p.Revisions[1]
	joined := c.Joined
	l.allSaved()

	now := ten.Add(-time.Hour)
	l.Rebase(now)
	var is []time.Time
	eachTime(l, func(_ string, t *time.Time) { is = append(is, *t) })
	for i := range is {
		if want := now.Add(time.Duration(i%5 - 4)); !is[i].Equal(want) {
			t.Errorf("time %d was moved to %s, want %s", i, is[i], want)
		}
	}
	if !equalities.DeepEqual(cluster.ClusterSeen, c.ClusterSeen) || !record.Resumed.Equal(p.Resumed) || p.Revisions[1] != revised || entry != e.Times() || events[0] != event {
		t.Error("a record that others read was changed")
	}
	if l.Cluster("east").Version() == c.Version() || l.Placement(key).Version() == p.Version() || !l.Urgent() || len(l.dirty) != 5 {
		t.Errorf("the versions are the same, or %d records are to be saved", len(l.dirty))
	}
	if s, _ := l.Suspension(until.Subject); !s.Until.Equal(until.Until) || !l.Cluster("east").Joined.Equal(joined) {
		t.Errorf("moved the end of the suspension to %+v, or Joined to %s", s, l.Cluster("east").Joined)
	}
	if l = saveAndLoad(t, Memory(), l); l.Unsaved() {
		t.Fatal("unsaved after a load")
	}
	for range 2 { // nothing is in the future any more
		if l.Rebase(now); l.Unsaved() {
			t.Errorf("moved again: %v", l.dirty)
		}
	}
}
