package member

import (
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

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
		s.pruner.prune(t.Context(), s.owned.Stales(m.ID), map[api.PlacementKey]bool{})
		if s.owned.Owns(from, m.ID) != broken || s.owned.Owns(to, m.ID) == broken {
			t.Errorf("broken: %t; the one has it: %t, the new owner has it: %t", broken, s.owned.Owns(from, m.ID), s.owned.Owns(to, m.ID))
		}
		if broken {
			continue
		}
		if it := s.inventory(to).Items.Of(m.ID); it.Hash != "" {
			t.Error("the new owner takes it for what it has applied itself")
		}
		after := sessionAt(t, server.Clone())
		if err := after.inventories.load(t.Context()); err != nil || !after.owned.Owns(to, m.ID) {
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
		for id := range s.inventory(from).Items.IDs() {
			works = append(works, &work.Work{Placement: api.PlacementKey{Name: "to-" + id.Name}, Keep: true, Awaited: []*work.Manifest{{Object: &api.Object{ID: id}}}})
		}
		s.setWorks(works)
		var stales []owned.Stale
		for _, w := range works[1:] {
			stales = append(stales, s.owned.Stales(w.Awaited[0].ID)...)
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
			if id := w.Awaited[0].ID; !after.owned.Owns(w.Placement, id) || !later.owned.Owns(w.Placement, id) || later.owned.Owns(from, id) {
				t.Errorf("%d placements: %s has it after a crash: %t, later: %t; the former owner: %t", n, w.Placement, after.owned.Owns(w.Placement, id), later.owned.Owns(w.Placement, id), later.owned.Owns(from, id))
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
	keeps(t, before, before.inventory(to))
	s, one := sessionAt(t, server), []*work.Manifest{m}
	s.setWorks([]*work.Work{{Placement: from, Remove: true}, {Placement: to, Awaited: one}, {Placement: third, Awaited: one}})
	if owner, _ := s.owned.NewOwner(m.ID, from, s.owned.Listing(m.ID)); owner != third {
		t.Fatalf("without inventories, it goes to %v", owner)
	}
	if err := s.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if owner, _ := s.owned.NewOwner(m.ID, from, s.owned.Listing(m.ID)); owner != to {
		t.Errorf("it goes to %v, not to %v", owner, to)
	}
}

func (s *session) holding(m *work.Manifest, placements ...api.PlacementKey) {
	for _, p := range placements {
		s.inventories.owned.Inventory(p).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: m.Hash})
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
			s.inventories.owned.Inventory(owner).Items.Put(inventory.Item{Version: "v1", Kind: m.ID.Kind, Namespace: m.ID.Namespace, Name: m.ID.Name, Hash: m.Hash})
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
