package member

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

var (
	here    = ledger.Fleet{Name: "prod", ID: "ours", Source: "git.example.com/fleet"}
	another = ledger.Fleet{Name: "prod", ID: "theirs", Source: "git.example.com/other"}
)

// memberOf returns a session of a fleet at a server that sessions of other fleets use too.
func memberOf(t *testing.T, f ledger.Fleet, at *shelf) *session {
	t.Helper()
	s := sessionAt(t, at)
	s.fleet.Fleet = f
	s.retry = time.NewTimer(time.Hour)
	s.trouble, s.verified, s.done = map[api.ID]*trouble{}, map[api.ID]observed.Standing{}, map[api.PlacementKey]bool{}
	s.braked, s.unseen = map[api.ID]braked{}, map[api.ID]bool{}
	s.health.Namespaces = []string{api.Namespace}
	return s
}

// keeps makes a session write an inventory.
func keeps(t *testing.T, s *session, inv *inventory) {
	t.Helper()
	s.inv[inv.Placement] = inv
	if err := s.save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
}

// Every part of an inventory names the owner, which can also be read from a damaged inventory.
func TestInventoriesNameTheirFleet(t *testing.T) {
	smallParts(t)
	at := newShelf()
	keeps(t, memberOf(t, here, at), heavy(3))
	s := memberOf(t, here, at)
	if err := s.inventories(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.foreign() || !slices.Equal(s.owners, []ledger.Owner{{ID: "ours", Source: here.Source}}) {
		t.Errorf("owners: %v, foreign: %v", s.owners, s.foreign())
	}
	for _, name := range at.names() {
		var o struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(at.maps[name], &o); err != nil || o.Metadata.Annotations[api.FleetIDAnnotation] != "ours" {
			t.Errorf("%s: %v, %v", name, o.Metadata.Annotations, err)
		}
	}
	delete(at.maps, at.names()[2])
	s = memberOf(t, another, at)
	if err := s.inventories(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.foreign() || len(s.inv) > 0 {
		t.Errorf("a damaged inventory of another fleet: owners %v", s.owners)
	}
}

// An inventory that names no fleet or an adopted one is written once with our fleet, and not
// again.
func TestInventoriesAreTakenOverOnce(t *testing.T) {
	tests := map[string]struct {
		wrote   ledger.Fleet
		adopted []ledger.Adoption
		marked  bool
	}{
		"of the version before":   {adopted: []ledger.Adoption{{Cluster: "east"}}},
		"of a lost ledger":        {wrote: ledger.Fleet{Name: "prod", ID: "old", Source: here.Source}, adopted: []ledger.Adoption{{Cluster: "east", ID: "old"}}},
		"adopted by a person":     {wrote: another, adopted: []ledger.Adoption{{Cluster: "east", ID: "theirs", By: "sam"}}, marked: true},
		"before the source moved": {wrote: ledger.Fleet{Name: "prod", ID: "ours", Source: "git.example.com/moved"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := newShelf()
			keeps(t, memberOf(t, test.wrote, at), held(3))
			at.done = nil
			s := memberOf(t, here, at)
			s.fleet.adopted = test.adopted
			var reported [][]ledger.Owner
			s.cfg.Report = func(o ledger.Observation) { reported = append(reported, o.(ledger.ClusterSeen).Owners) }
			if err := s.inventories(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.works = map[api.PlacementKey]work.Work{web: {Placement: web, Keep: true}}
			for range 2 {
				s.saveInventories(t.Context(), map[api.PlacementKey]bool{})
			}
			claimed := "PATCH " + claimID("prod").Name
			if test.wrote.ID == "" {
				claimed = "POST configmaps" // versions without IDs had no claims
			}
			if want := []string{claimed, "PATCH " + inventoryName("prod", web)}; !slices.Equal(at.done, want) {
				t.Errorf("written: %q, want %q", at.done, want)
			}
			if s.foreign() {
				t.Error("the cluster is held by another fleet")
			}
			if want := [][]ledger.Owner{{{ID: "ours", Source: here.Source}}}; !slices.EqualFunc(reported, want, slices.Equal) {
				t.Errorf("reported owners %v, want %v", reported, want)
			}
			again := memberOf(t, here, at)
			if err := again.inventories(t.Context()); err != nil || again.inv[web].Adopted != test.marked {
				t.Errorf("marked as adopted: %v, want %v (%v)", again.inv[web].Adopted, test.marked, err)
			}
		})
	}
}

// On a cluster that another fleet holds, a turn writes nothing, and leaving the cluster
// releases nothing. Once the other fleet is gone, everything is reconciled.
func TestNothingIsWrittenToAForeignCluster(t *testing.T) {
	for _, woken := range []waking{byFleet, byWorks, byCheck, byChanges, bySweep, byRetry} {
		at := newShelf()
		keeps(t, memberOf(t, another, at), held(3))
		at.done = nil
		s := memberOf(t, here, at)
		s.sweeping.timer = time.NewTimer(time.Hour)
		s.last = []work.Work{{Placement: web, Remove: true, AllowDelete: true}}
		if err := s.inventories(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.turn(t.Context(), woken); err != nil || len(at.done) > 0 || !s.observingOnly {
			t.Errorf("woken by %d: %v, written: %q, stood back: %v", woken, err, at.done, s.observingOnly)
		}
	}
}

func TestLeavingAForeignClusterGivesNothingUp(t *testing.T) {
	at := newShelf()
	keeps(t, memberOf(t, another, at), held(3))
	at.done = nil
	s := memberOf(t, here, at)
	if err := s.inventories(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.turn(ctx, byLeave) }()
	<-s.left
	cancel()
	if err := <-ended; err != nil || len(at.done) > 0 {
		t.Errorf("%v, written: %q", err, at.done)
	}
}

// An inventory that somebody else has written is read before it is restored. If it belongs to
// another fleet now, nothing is written.
func TestTakenInventoryIsNotPutBack(t *testing.T) {
	for _, id := range []api.ID{inventoryID(inventoryName("prod", web)), claimID("prod")} {
		at := newShelf()
		mine := memberOf(t, here, at)
		keeps(t, mine, held(3))
		touched := map[api.ID]bool{id: true}
		if mine.lostToOtherFleet(t.Context(), touched) {
			t.Errorf("our own %s is taken for another's", id)
		}
		l := *mine.live.Of(id)
		l.Version, l.Fleet = l.Version+1, "prod" // other gitfleets own the same fields
		mine.live.Put(id, &l)
		if mine.lostToOtherFleet(t.Context(), touched) {
			t.Errorf("the edited %s is taken for another fleet's", id)
		}
		taking := memberOf(t, another, at)
		taking.fleet.adopted = []ledger.Adoption{{Cluster: "east", ID: "ours", By: "sam"}}
		keeps(t, taking, held(3))
		if !mine.lostToOtherFleet(t.Context(), touched) {
			t.Errorf("%s that another fleet has taken is not noticed", id)
		}
	}
}

func TestCommitsTellOldInventoriesApart(t *testing.T) {
	at := newShelf()
	keeps(t, memberOf(t, ledger.Fleet{}, at), held(3))
	for commit, want := range map[string]string{"c1": "", "c2": "c1"} {
		s := memberOf(t, here, at)
		s.cfg.HasCommit = func(hash string) bool { return hash == commit }
		if err := s.inventories(t.Context()); err != nil || !slices.Equal(s.owners, []ledger.Owner{{UnknownCommit: want}}) {
			t.Errorf("with commit %s: %v, %v", commit, s.owners, err)
		}
	}
}

// An adopted inventory is marked until all of its objects are desired.
func TestAdoptedInventoryIsDigested(t *testing.T) {
	s := memberOf(t, here, newShelf())
	s.cfg.Log = slog.New(slog.DiscardHandler)
	inv := held(1)
	inv.Adopted = true
	s.inv[web] = inv
	s.works = map[api.PlacementKey]work.Work{web: {Placement: web}}
	if s.finishAdoption(inv); !inv.Adopted {
		t.Error("an inventory with an object that nobody wants is digested")
	}
	for it := range inv.items.all() {
		inv.items.Drop(it.id())
	}
	if s.finishAdoption(inv); inv.Adopted {
		t.Error("an inventory that has only what is wanted is still adopted")
	}
}
