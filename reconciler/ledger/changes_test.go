package ledger

import (
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The first plan of a large fleet is saved in parts. After each part, a cluster is saved with all its entries or waits, and
// everything else is saved.
func TestEntriesThatAreAddedAreSavedClusterByCluster(t *testing.T) {
	dir := t.TempDir()
	s, l := open(t, dir), New()
	keys := []api.PlacementKey{{Name: "api"}, {Name: "docs"}, {Name: "web"}}
	const clusters = maxRecords / 2
	for _, key := range keys {
		l.SetPlacement(key, Placement{})
		for i := range clusters {
			l.Bind(key, placement.Binding{Cluster: fmt.Sprintf("c%04d", i), Assigned: placement.Revision{Hash: "v1"}})
		}
	}
	for saves := 1; ; saves++ {
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		saved, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for i := range clusters {
			cluster := fmt.Sprintf("c%04d", i)
			for _, key := range keys {
				p := saved.Placement(key)
				if p == nil || (p.Entry(cluster) != nil) == l.Waits(cluster) {
					t.Fatalf("after %d saves: %s on %s waits: %v", saves, key, cluster, l.Waits(cluster))
				}
				if l.Waits(cluster) {
					waiting++
				}
			}
		}
		if l.UnsavedBesides() || l.Unsaved() != (waiting > 0) || l.Urgent() != (waiting > 0) {
			t.Errorf("after %d saves %d entries wait, and unsaved are others: %v, any: %v", saves, waiting, l.UnsavedBesides(), l.Unsaved())
		}
		if waiting == 0 {
			if saves != 2 {
				t.Errorf("there are %d saves", saves)
			}
			if dump(t, saved) != dump(t, l) {
				t.Error("something else is saved")
			}
			return
		}
		if l.Bind(keys[0], placement.Binding{Cluster: "c0000", Assigned: placement.Revision{Hash: "v2"}}); l.Waits("c0000") {
			t.Error("a binding that was saved before may wait for a later save")
		}
		l.Unbind(keys[0], fmt.Sprintf("c%04d", clusters-1))
		l.Bind(keys[0], placement.Binding{Cluster: fmt.Sprintf("c%04d", clusters-1), Assigned: placement.Revision{Hash: "v1"}})
	}
}

// Very many observations are saved in parts, of which the first has the decisions that are not saved.
func TestManyObservationsAreSavedInParts(t *testing.T) {
	s, l := open(t, t.TempDir()), New()
	observe := func() {
		for i := range 2 * maxRecords {
			l.Fold(protocol.ClusterSeen{Cluster: fmt.Sprintf("c%04d", i), At: noon})
		}
	}
	save := func(unsaved bool) {
		t.Helper()
		if err := s.Save(l); err != nil || l.Unsaved() != unsaved {
			t.Errorf("unsaved: %v, %v", l.Unsaved(), err)
		}
	}
	observe()
	save(true)
	save(false)
	observe()
	l.SetInForce("v1")
	save(true)
	if l.Urgent() || !l.UnsavedBesides() {
		t.Error("the decision waits for a later save")
	}
	save(true)
	save(false)
}
