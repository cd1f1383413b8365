package ledger

import (
	"reflect"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A renamed placement keeps its clusters, stops and suspensions, also across a restart. Under
// its old names it is being removed from the clusters that hold its objects.
func TestRename(t *testing.T) {
	old, current, newest := api.PlacementKey{Name: "old"}, api.PlacementKey{Name: "new"}, api.PlacementKey{Name: "newest"}
	held := placement.Revision{Commit: "v1", Hash: "h1"}
	l, store := New(), Memory()
	l.SetPlacement(old, Placement{Generation: 3, Stops: []placement.Stop{{Cluster: "a", Failed: held}}})
	l.Bind(old, placement.Binding{Cluster: "a", Assigned: held})
	l.Bind(old, placement.Binding{Cluster: "b"}) // not released yet
	l.Bind(old, placement.Binding{Cluster: "c", Assigned: held, Removing: true})
	l.Suspend(Suspension{Subject: Subject{Placement: old, Cluster: "a"}, By: "alice"})

	tests := []struct {
		rename   Rename
		removing map[api.PlacementKey][]string
	}{
		{Rename{old, current}, map[api.PlacementKey][]string{old: {"a", "c"}}},
		{Rename{current, newest}, map[api.PlacementKey][]string{old: {"a", "c"}, current: {"a"}}},
		{Rename{newest, old}, map[api.PlacementKey][]string{current: {"a"}, newest: {"a"}}},
	}
	for _, test := range tests {
		to := test.rename.To
		l.Rename(test.rename)
		l = saveAndLoad(t, store, l)
		p := l.Placement(to)
		if p.Deleted || p.Generation != 3 || len(p.Stops) != 1 || p.Into != (api.PlacementKey{}) || p.Formerly[len(p.Formerly)-1] != test.rename.From {
			t.Fatalf("%s is %+v", to, p)
		}
		if a, b := p.Entry("a"), p.Entry("b"); a == nil || a.Binding.Assigned != held || a.Binding.Removing || b == nil || b.Binding.HasRevision() {
			t.Errorf("%s holds %+v and %+v", to, a, b)
		}
		if _, ok := l.Suspension(Subject{Placement: to, Cluster: "a"}); !ok || len(l.Suspensions()) != 1 {
			t.Errorf("after %v there are the suspensions %v", test.rename, l.Suspensions())
		}
		for key, clusters := range test.removing {
			left := l.Placement(key)
			if !left.Deleted || left.Into != to || len(left.Stops) > 0 || len(left.Entries()) != len(clusters) {
				t.Fatalf("%s is left as %+v", key, left)
			}
			for _, cluster := range clusters {
				if e := left.Entry(cluster); e == nil || !e.Binding.Removing {
					t.Errorf("%s of %s is %+v, not being removed", cluster, key, e)
				}
			}
		}
	}
}

// A report that a placement was removed is ignored if a placement with that name exists again.
func TestAnEarlierRemovalDoesNotCountAfterARenameBack(t *testing.T) {
	old, current := api.PlacementKey{Name: "old"}, api.PlacementKey{Name: "new"}
	held := placement.Revision{Commit: "v1", Hash: "h1"}
	l := New()
	l.SetPlacement(old, Placement{})
	l.Bind(old, placement.Binding{Cluster: "a", Assigned: held})
	l.Rename(Rename{old, current})
	l.Rename(Rename{current, old})
	l.Fold(protocol.WorkSeen{Cluster: "a", Placement: old, At: time.Now(), WorkState: protocol.WorkState{Revision: held, Removed: true, Done: true}})
	if e := l.Placement(old).Entry("a"); e.Seen != nil || e.Binding.Removing {
		t.Errorf("the cluster counts as %+v", e)
	}
}

// A placement that is renamed to a key whose deletion is in progress leaves nothing behind on a
// cluster that it has not reached: there it counts as having what is being removed. On a cluster
// that it has reached, what is being removed is the leftover revision.
func TestARenameToAKeyThatIsBeingRemoved(t *testing.T) {
	old, current := api.PlacementKey{Name: "old"}, api.PlacementKey{Name: "new"}
	was, held := placement.Revision{Commit: "v1", Hash: "h1"}, placement.Revision{Commit: "v2", Hash: "h2"}
	l, store := New(), Memory()
	l.SetPlacement(current, Placement{Deleted: true})
	for _, cluster := range []string{"reached", "reached and empty", "waiting", "empty", "another"} {
		l.Bind(current, placement.Binding{Cluster: cluster, Assigned: was, Removing: true})
	}
	l.Bind(current, placement.Binding{Cluster: "same", Assigned: held, Removing: true})
	for _, cluster := range []string{"empty", "reached and empty"} {
		l.Fold(protocol.WorkSeen{Cluster: cluster, Placement: current, At: time.Now(), WorkState: protocol.WorkState{Revision: was, Removed: true, Done: true}})
	}
	l.SetPlacement(old, Placement{})
	for _, cluster := range []string{"reached", "reached and empty", "same"} {
		l.Bind(old, placement.Binding{Cluster: cluster, Assigned: held})
	}
	l.Bind(old, placement.Binding{Cluster: "waiting"})
	l.Bind(old, placement.Binding{Cluster: "empty"})
	early := Deviation{Early: []api.ID{{Kind: "Namespace", Name: "web"}}}
	l.SetDeviation(old, "waiting", early, time.Now())
	l.Rename(Rename{old, current})
	l = saveAndLoad(t, store, l)
	p := l.Placement(current)
	for cluster, want := range map[string]placement.Binding{
		"reached": {Assigned: held, Circumstances: &placement.Circumstances{Leftover: &was}}, "reached and empty": {Assigned: held}, "same": {Assigned: held}, "waiting": {Assigned: was, Removing: true}, "empty": {}, "another": {Assigned: was, Removing: true},
	} {
		if got := p.Entry(cluster); got == nil || got.Binding.Assigned != want.Assigned || got.Binding.Removing != want.Removing || !reflect.DeepEqual(got.Binding.Unusual(), want.Unusual()) {
			t.Errorf("%s: %+v, want %+v", cluster, got, want)
		}
	}
	if p.Deleted {
		t.Error("the placement is still being deleted")
	}
	if !p.Entry("waiting").Unusual().Deviation.Equal(early) {
		t.Errorf("of the objects that the cluster has early, the placement keeps %v", p.Entry("waiting").Unusual().Early)
	}
	if e := l.Placement(old).Entry("waiting"); e == nil || !e.Binding.Removing {
		t.Errorf("under the old key, the objects that the cluster has early are not handed over: %+v", e)
	}
}

func saveAndLoad(t *testing.T, store Store, l *Ledger) *Ledger {
	t.Helper()
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	out, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
