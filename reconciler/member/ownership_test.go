package member

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An object that a placement gives up is not deleted if another placement is to have it, or
// also has it and keeps what it has.
func TestStaleObjectPassesToTheAwaitingPlacement(t *testing.T) {
	from, to, third := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}, api.PlacementKey{Name: "third"}
	m := oneManifest()
	one := []*work.Manifest{m}
	v1 := placement.Revision{Commit: "v1", Hash: "1"}
	goes := &work.Work{Placement: from, Remove: true}
	tests := map[string]struct {
		has   []api.PlacementKey
		works []*work.Work
		want  []stale // without inventories and items
	}{
		"nobody wants it":            {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to}}, []stale{{}}},
		"one waits for it":           {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Revision: v1, Awaited: one}}, []stale{{newOwner: to}}},
		"one is to come":             {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Keep: true, Awaited: one}}, []stale{{newOwner: to}}},
		"one waits and does nothing": {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Awaited: one, Suspended: "by hand"}}, nil},
		"two wait":                   {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}}, []stale{{newOwner: third}}},
		"two wait and one has it":    {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}}, []stale{{newOwner: to}}},
		"another gets it at once":    {[]api.PlacementKey{from}, []*work.Work{goes, {Placement: to, Manifests: one}, {Placement: third, Awaited: one}}, []stale{{handedOver: true}}},
		"it has it early":            {[]api.PlacementKey{from}, []*work.Work{{Placement: from, Revision: v1, Awaited: one}}, nil},
		"another keeps what it has":  {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to, Keep: true}}, []stale{{newOwner: to}}},
		"another was told nothing":   {[]api.PlacementKey{from, to}, []*work.Work{goes}, []stale{{newOwner: to}}},
		"another gives it up too":    {[]api.PlacementKey{from, to}, []*work.Work{goes, {Placement: to}}, []stale{{}, {}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.holding(m, test.has...)
			s.setWorks(test.works)
			got := s.owned.stales(m.ID)
			if len(got) != len(test.want) {
				t.Fatalf("%d are to give it up, not %d", len(got), len(test.want))
			}
			for i, st := range got {
				if st.newOwner != test.want[i].newOwner || st.handedOver != test.want[i].handedOver {
					t.Errorf("it goes to %v (at once: %t), not to %v (%t)", st.newOwner, st.handedOver, test.want[i].newOwner, test.want[i].handedOver)
				}
			}
		})
	}
}

// An object is in the new owner's inventory on the cluster before the old one drops it, and
// nothing is deleted. If the new inventory cannot be written, nothing changes.
func TestNewOwnersInventoryIsWrittenFirst(t *testing.T) {
	from, to := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}
	m := oneManifest()
	for _, broken := range []bool{false, true} {
		server := apiserver.NewConfigMaps()
		s := sessionAt(t, server)
		s.holding(m, from)
		s.setWorks([]*work.Work{{Placement: from, Remove: true}, {Placement: to, Keep: true, Awaited: []*work.Manifest{m}}})
		if broken {
			server.Intact = 0
		}
		s.pruner.prune(t.Context(), s.owned.stales(m.ID), map[api.PlacementKey]bool{})
		if s.owned.owns(from, m.ID) != broken || s.owned.owns(to, m.ID) == broken {
			t.Errorf("broken: %t; the one has it: %t, the new owner has it: %t", broken, s.owned.owns(from, m.ID), s.owned.owns(to, m.ID))
		}
		if broken {
			continue
		}
		if it := s.owned.inv.Of(to).Items.Of(m.ID); it.Hash != "" {
			t.Error("the new owner takes it for what it has applied itself")
		}
		after := sessionAt(t, server.Clone())
		if err := after.inventories.load(t.Context()); err != nil || !after.owned.owns(to, m.ID) {
			t.Errorf("the cluster does not know of the new owner: %v", err)
		}
	}
}

// Objects that several placements get are announced with one request, which counts after a crash, and the inventories of these
// placements are written with another one.
func TestHandOverToSeveralPlacementsIsAnnounced(t *testing.T) {
	from := api.PlacementKey{Name: "from"}
	for n, want := range map[int]int{2: 3, 3: 4, 20: 4} { // one is for the inventory of the placement that hands over
		at := apiserver.NewConfigMaps()
		s := memberOf(t, here, at)
		keeps(t, s, heldBy(from, n))
		works := []*work.Work{{Placement: from}}
		for id := range s.owned.inv.Of(from).Items.IDs() {
			works = append(works, &work.Work{Placement: api.PlacementKey{Name: "to-" + id.Name}, Keep: true, Awaited: []*work.Manifest{{Object: &api.Object{ID: id}}}})
		}
		s.setWorks(works)
		var stales []stale
		for _, w := range works[1:] {
			stales = append(stales, s.owned.stales(w.Awaited[0].ID)...)
		}
		at.Writes = nil
		touched := map[api.PlacementKey]bool{}
		s.pruner.prune(t.Context(), stales, touched)
		after := sessionAt(t, at.Clone())
		if err := after.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.inventories.save(t.Context(), touched)
		later := sessionAt(t, at.Clone())
		if err := later.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range works[1:] {
			if id := w.Awaited[0].ID; !after.owned.owns(w.Placement, id) || !later.owned.owns(w.Placement, id) || later.owned.owns(from, id) {
				t.Errorf("%d placements: %s has it after a crash: %t, later: %t; the former owner: %t", n, w.Placement, after.owned.owns(w.Placement, id), later.owned.owns(w.Placement, id), later.owned.owns(from, id))
			}
		}
		if len(at.Writes) != want {
			t.Errorf("%d placements cost %d writes: %q", n, len(at.Writes), at.Writes)
		}
	}
}

// When the inventories are read again, the placement that has an object comes first.
func TestReadingInventoriesUpdatesNewOwners(t *testing.T) {
	from, to, third := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}, api.PlacementKey{Name: "third"}
	m, server := oneManifest(), apiserver.NewConfigMaps()
	before := sessionAt(t, server)
	before.holding(m, to)
	keeps(t, before, before.owned.inv.Of(to))
	s, one := sessionAt(t, server), []*work.Manifest{m}
	s.setWorks([]*work.Work{{Placement: from, Remove: true}, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}})
	if owner, _ := s.owned.newOwner(m.ID, from, s.owned.listing(m.ID)); owner != third {
		t.Fatalf("without inventories, it goes to %v", owner)
	}
	if err := s.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if owner, _ := s.owned.newOwner(m.ID, from, s.owned.listing(m.ID)); owner != to {
		t.Errorf("it goes to %v, not to %v", owner, to)
	}
}

// A cluster that leaves the fleet gives up all objects, also those that a placement was to have
// in the end.
func TestLeavingReleasesAwaitedObjects(t *testing.T) {
	from := api.PlacementKey{Name: "from"}
	m := oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.holding(m, from)
	s.setWorks([]*work.Work{{Placement: from, Revision: placement.Revision{Commit: "v1", Hash: "1"}, Awaited: []*work.Manifest{m}}})
	if len(s.owned.stales(m.ID)) != 0 {
		t.Fatal("what is awaited is given up")
	}
	s.owned.releaseAll()
	if got := s.owned.stales(m.ID); len(got) != 1 || got[0].newOwner != (api.PlacementKey{}) {
		t.Errorf("it is not given up: %+v", got)
	}
}

func (s *session) holding(m *work.Manifest, placements ...api.PlacementKey) {
	for _, p := range placements {
		s.owned.inventory(p).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: m.Hash})
	}
}

// An object of two works goes to the placement whose inventory has it, whatever their order, and
// the other one is reported as failed. Plans have such works only for a paused cluster after the
// ledger was lost.
func TestAnObjectOfTwoWorksStaysWithItsOwner(t *testing.T) {
	m := oneManifest()
	one, two := api.PlacementKey{Name: "one"}, api.PlacementKey{Name: "two"}
	works := []*work.Work{{Placement: one, Keep: true, Manifests: []*work.Manifest{m}}, {Placement: two, Keep: true, Manifests: []*work.Manifest{m}}}
	for _, owner := range []api.PlacementKey{one, two} {
		for range 2 {
			s := sessionAt(t, apiserver.NewConfigMaps())
			s.owned.inventory(owner).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: m.Hash})
			s.setWorks(works)
			if w, _ := s.Wanted().Of(m.ID); w.Placement != owner || len(s.Wanted()) != 1 {
				t.Errorf("%s owns it, and %s gets it, of %d", owner, w.Placement, len(s.Wanted()))
			}
			for _, p := range []api.PlacementKey{one, two} {
				if state, listed := s.reporter.state(p, m.ID); p != owner && (!listed || state.Applied.Reason != api.FailedToTakeOver) {
					t.Errorf("%s, which does not own it, is reported with %+v", p, state.Applied)
				}
			}
			slices.Reverse(works)
		}
	}
}

// A stale object is removed even if another placement compares it: a placement that only
// reports differences takes over nothing.
func TestReportDiffTakesNothingOver(t *testing.T) {
	left, compares := api.PlacementKey{Name: "left"}, api.PlacementKey{Name: "compares"}
	m := oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.owned.inv.Put(inventory.New(left, placement.Revision{}))
	s.owned.inv.Of(left).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name})
	s.setWorks([]*work.Work{
		{Placement: left, Remove: true},
		{Placement: compares, Strategy: api.ApplyStrategy{Type: api.ReportDiff}, Manifests: []*work.Manifest{m}},
	})
	if stales := s.owned.stales(m.ID); len(stales) != 1 || stales[0].handedOver {
		t.Errorf("it is left with %+v", stales)
	}
}

// The placement that keeps an object is looked for among the inventories that list it, and not in all: a cluster can have ten
// thousand, each of which a member may fill as it likes.
func TestNewOwnerListsTheObject(t *testing.T) {
	from, to := api.PlacementKey{Name: "from"}, api.PlacementKey{Name: "to"}
	m := oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	s.holding(m, from)
	s.holding(m, to)
	if owner, found := s.owned.newOwner(m.ID, from, s.owned.listing(m.ID)); owner != to || !found {
		t.Errorf("it goes to %v", owner)
	}
	if owner, found := s.owned.newOwner(m.ID, from, nil); found {
		t.Errorf("it goes to %v, in whose inventory nobody has looked", owner)
	}
}
