package owned

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An object that a placement gives up is not deleted if another placement is to have it, or
// also has it and keeps what it has.
func TestStaleObjectPassesToTheAwaitingPlacement(t *testing.T) {
	from, to, third := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}, api.PlacementKey{Name: "third"}
	m := manifest("one")
	one := []*work.Manifest{m}
	v1 := placement.Revision{Commit: "v1", Hash: "1"}
	goes := &work.Work{Placement: from, Remove: true}
	tests := map[string]struct {
		has   []api.PlacementKey
		works []*work.Work
		want  []Stale // without inventories and items
	}{
		"nobody wants it":            {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to}}, []Stale{{}}},
		"one waits for it":           {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Revision: v1, Awaited: one}}, []Stale{{NewOwner: to}}},
		"one is to come":             {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Keep: true, Awaited: one}}, []Stale{{NewOwner: to}}},
		"one waits and does nothing": {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Awaited: one, Suspended: "by hand"}}, nil},
		"two wait":                   {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}}, []Stale{{NewOwner: third}}},
		"two wait and one has it":    {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}}, []Stale{{NewOwner: to}}},
		"another gets it at once":    {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Manifests: one}, {Placement: third, Awaited: one}}, []Stale{{HandedOver: true}}},
		"it has it early":            {[]api.PlacementKey{from}, []*work.Work{{Placement: from, Revision: v1, Awaited: one}}, nil},
		"another keeps what it has":  {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to, Keep: true}}, []Stale{{NewOwner: to}}},
		"another was told nothing":   {[]api.PlacementKey{from, to}, []*work.Work{goes}, []Stale{{NewOwner: to}}},
		"another gives it up too":    {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to}}, []Stale{{}, {}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := clusterOf(m, test.has, test.works...).Stales(m.ID)
			if len(got) != len(test.want) {
				t.Fatalf("%d are to give it up, not %d", len(got), len(test.want))
			}
			for i, st := range got {
				if st.NewOwner != test.want[i].NewOwner || st.HandedOver != test.want[i].HandedOver {
					t.Errorf("it goes to %v (at once: %t), not to %v (%t)", st.NewOwner, st.HandedOver, test.want[i].NewOwner, test.want[i].HandedOver)
				}
			}
		})
	}
}

// A cluster that leaves the fleet gives up all objects, also those that a placement was to have
// in the end.
func TestLeavingReleasesAwaitedObjects(t *testing.T) {
	from := api.PlacementKey{Name: "from"}
	m := manifest("one")
	s := clusterOf(m, []api.PlacementKey{from}, &work.Work{Placement: from, Revision: placement.Revision{Commit: "v1", Hash: "1"}, Awaited: []*work.Manifest{m}})
	if len(s.Stales(m.ID)) != 0 {
		t.Fatal("what is awaited is given up")
	}
	s.replace(s.Release())
	if got := s.Stales(m.ID); len(got) != 1 || got[0].NewOwner != (api.PlacementKey{}) {
		t.Errorf("it is not given up: %+v", got)
	}
}

// A stale object is removed even if another placement compares it: a placement that only
// reports differences takes over nothing.
func TestReportDiffTakesNothingOver(t *testing.T) {
	left, compares := api.PlacementKey{Name: "left"}, api.PlacementKey{Name: "compares"}
	m := manifest("one")
	s := clusterOf(m, []api.PlacementKey{left}, &work.Work{Placement: left, Remove: true},
		&work.Work{Placement: compares, Strategy: api.ApplyStrategy{Type: api.ReportDiff}, Manifests: []*work.Manifest{m}})
	if stales := s.Stales(m.ID); len(stales) != 1 || stales[0].HandedOver {
		t.Errorf("it is left with %+v", stales)
	}
}

// The placement that keeps an object is looked for among the inventories that list it, and not in all: a cluster can have ten
// thousand, each of which a member may fill as it likes.
func TestNewOwnerListsTheObject(t *testing.T) {
	from, to := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}
	m := manifest("one")
	s := clusterOf(m, []api.PlacementKey{from, to})
	if owner, found := s.NewOwner(m.ID, from, s.Listing(m.ID)); owner != to || !found {
		t.Errorf("it goes to %v", owner)
	}
	if owner, found := s.NewOwner(m.ID, from, nil); found {
		t.Errorf("it goes to %v, in whose inventory nobody has looked", owner)
	}
}

// A cluster has what some placements own and should have.
type cluster struct {
	*State
	View
	desired *desired.State
}

// clusterOf returns a cluster on which some placements have the object of a manifest.
func clusterOf(m *work.Manifest, has []api.PlacementKey, works ...*work.Work) *cluster {
	should := &desired.State{}
	s := New(should.View())
	for _, p := range has {
		s.Inventory(p).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: m.Hash})
	}
	c := &cluster{State: s, View: s.View(), desired: should}
	c.replace(works)
	return c
}

func (c *cluster) replace(works []*work.Work) { c.ReplaceWorks(c.desired, works) }

func manifest(name string) *work.Manifest {
	return &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Namespace: "app", Name: name}, Hash: "hash", Content: &unstructured.Unstructured{}}}
}
