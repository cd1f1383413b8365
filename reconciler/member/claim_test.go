package member

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// If two fleets of one name have both found an empty cluster, the one that creates the claim
// writes. The other one writes nothing and reports who holds the cluster.
func TestOnlyOneFleetClaimsAnEmptyCluster(t *testing.T) {
	at := newShelf()
	first, second := memberOf(t, here, at), memberOf(t, another, at)
	for _, s := range []*session{first, second} {
		if err := s.inventories(t.Context()); err != nil || s.foreign() {
			t.Fatalf("on an empty cluster: %v, foreign: %v", err, s.foreign())
		}
	}
	keeps(t, first, held(3))
	before := at.clone()
	at.done = nil
	second.works = map[api.PlacementKey]work.Work{web: {Placement: web}}
	second.inv[web] = held(2)
	if err := second.save(t.Context(), second.inv[web]); err == nil || !second.foreign() {
		t.Errorf("the second saves an inventory: %v, foreign: %v", err, second.foreign())
	}
	var reported []ledger.Owner
	second.cfg.Report = func(o ledger.Observation) { reported = o.(ledger.ClusterSeen).Owners }
	if err := second.checkForeign(t.Context()); err != nil || !second.observingOnly {
		t.Errorf("the second does not stand back: %v", err)
	}
	if want := []ledger.Owner{{ID: "ours", Source: here.Source}}; !slices.Equal(reported, want) {
		t.Errorf("the second reports %v, want %v", reported, want)
	}
	if want := []string{"POST configmaps"}; !slices.Equal(at.done, want) || !slices.Equal(at.names(), before.names()) {
		t.Errorf("the second has asked for %q, and there is %q, was %q", at.done, at.names(), before.names())
	}
}

// The claim costs one request: neither the next inventory nor the next session writes it again.
func TestClaimIsWrittenOnce(t *testing.T) {
	at := newShelf()
	s := memberOf(t, here, at)
	keeps(t, s, held(3))
	other := held(2)
	other.Placement = api.PlacementKey{Name: "other"}
	keeps(t, s, other)
	s = memberOf(t, here, at)
	if err := s.inventories(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.inv[web].Abandon = true
	keeps(t, s, s.inv[web])
	if n := len(slices.DeleteFunc(slices.Clone(at.done), func(done string) bool { return strings.Contains(done, "inventory-") })); n != 1 {
		t.Errorf("%d requests for the claim: %q", n, at.done)
	}
}

// If the connection breaks during the creation of the claim, the claim still counts as ours.
func TestClaimWithALostAnswer(t *testing.T) {
	at := newShelf()
	broken := true
	s := memberOf(t, here, at)
	lost := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken && r.Method == http.MethodPost {
			broken = false
			at.ServeHTTP(discarded{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		at.ServeHTTP(w, r)
	}))
	s.conn = lost.conn
	inv := held(1)
	s.inv[web] = inv
	if err := s.save(t.Context(), inv); err == nil {
		t.Error("the answer was not lost")
	}
	if err := s.save(t.Context(), inv); err != nil || s.foreign() {
		t.Errorf("the second time: %v, foreign: %v", err, s.foreign())
	}
}

// discarded is a response that is not sent.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// The claim is deleted with the last inventory. While there are inventories, a missing or
// edited claim is restored.
func TestClaimLivesAsLongAsInventories(t *testing.T) {
	at := newShelf()
	s := memberOf(t, here, at)
	id, other := claimID("prod"), held(2)
	other.Placement = api.PlacementKey{Name: "other"}
	keeps(t, s, held(3))
	keeps(t, s, other)
	delete(at.maps, id.Name)
	s.live.Drop(id)
	s.restoreInventories(t.Context(), map[api.ID]bool{id: true})
	if !slices.Contains(at.names(), id.Name) {
		t.Errorf("a deleted claim is not put back: %q", at.names())
	}
	for _, p := range []api.PlacementKey{web, other.Placement} {
		s.inv[p].items = items{}
		if !slices.Contains(at.names(), id.Name) {
			t.Errorf("the claim is gone before the inventory of %s: %q", p, at.names())
		}
		s.works = map[api.PlacementKey]work.Work{p: {Placement: p, Remove: true}}
		s.saveInventories(t.Context(), map[api.PlacementKey]bool{p: true})
	}
	if len(at.names()) > 0 {
		t.Errorf("left: %q", at.names())
	}
}

// The claim of an adopted fleet is taken over with the first inventory.
func TestClaimIsAdopted(t *testing.T) {
	at := newShelf()
	keeps(t, memberOf(t, another, at), held(3))
	s := memberOf(t, here, at)
	s.fleet.adopted = []ledger.Adoption{{Cluster: "east", ID: "theirs", By: "sam"}}
	if err := s.inventories(t.Context()); err != nil {
		t.Fatal(err)
	}
	keeps(t, s, s.inv[web])
	late := memberOf(t, another, at)
	if err := late.inventories(t.Context()); err != nil || !late.foreign() || late.claim.owner.ID != "ours" {
		t.Errorf("%v; the claim names %v, foreign to the other: %v", err, late.claim.owner, late.foreign())
	}
}
