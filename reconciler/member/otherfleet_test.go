package member

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An inventory that names no fleet or an adopted one is written once with our fleet, and not
// again.
func TestInventoriesAreAdoptedOnce(t *testing.T) {
	tests := map[string]struct {
		wrote   protocol.Fleet
		adopted []protocol.Adoption
		marked  bool
	}{
		"of the version before":   {adopted: []protocol.Adoption{{Cluster: "east"}}},
		"of a lost ledger":        {wrote: protocol.Fleet{Name: "prod", ID: "old", Source: here.Source}, adopted: []protocol.Adoption{{Cluster: "east", ID: "old"}}},
		"adopted by a person":     {wrote: another, adopted: []protocol.Adoption{{Cluster: "east", ID: "theirs", By: "sam"}}, marked: true},
		"before the source moved": {wrote: protocol.Fleet{Name: "prod", ID: "ours", Source: "git.example.com/moved"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := apiserver.NewConfigMaps()
			keeps(t, memberOf(t, test.wrote, at), held(3))
			at.Writes = nil
			s := memberOf(t, here, at)
			s.store.SetMembership(protocol.Membership{Fleet: here, Adopted: test.adopted})
			var reported [][]protocol.Owner
			s.cfg.Report = func(o protocol.Observation) { reported = append(reported, o.(protocol.ClusterSeen).Owners) }
			if err := s.inventories.load(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.replaceWorks([]*work.Work{{Placement: web, Keep: true}})
			for range 2 {
				s.saveInventories(t.Context(), map[api.PlacementKey]bool{})
			}
			claimed, first := "PATCH claim-", "PATCH "+inventory.FirstPart("prod", web).Name
			if test.wrote.ID == "" {
				claimed = "POST configmaps" // versions without IDs had no claims
			}
			if len(at.Writes) != 2 || !strings.HasPrefix(at.Writes[0], claimed) || at.Writes[1] != first {
				t.Errorf("written: %q, want %q and %q", at.Writes, claimed, first)
			}
			if s.store.ClaimedByOther() {
				t.Error("the cluster is held by another fleet")
			}
			if want := [][]protocol.Owner{{{ID: "ours", Source: here.Source}}}; !slices.EqualFunc(reported, want, slices.Equal) {
				t.Errorf("reported owners %v, want %v", reported, want)
			}
			again := memberOf(t, here, at)
			if err := again.inventories.load(t.Context()); err != nil || again.inventory(web).Adopted != test.marked {
				t.Errorf("marked as adopted: %v, want %v (%v)", again.inventory(web).Adopted, test.marked, err)
			}
		})
	}
}

// The Job of a gate is created by the session, and not on a cluster that another fleet holds, before the first works, or while the cluster
// is left. The permissions for it are needed for some time.
func TestJobsOfGatesAreCreatedWhereTheFleetMayWrite(t *testing.T) {
	for name, test := range map[string]struct {
		fleet  protocol.Fleet
		change func(s *session)
		want   bool
	}{
		"ours":             {here, func(*session) {}, true},
		"another fleet's":  {another, func(*session) {}, false},
		"not known yet":    {here, func(s *session) { s.lastWorks = nil }, false},
		"while it is left": {here, func(s *session) { s.leaving = true }, false},
		"it is silent": {here, func(s *session) {
			for !s.conn.CutOff() {
				s.conn.RecordResult(errors.New("no answer")) //nolint:errcheck // it is counted
			}
		}, false},
	} {
		var requests []string
		at := apiserver.NewConfigMaps()
		keeps(t, memberOf(t, test.fleet, at), held(1))
		s := sessionAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/apis/batch") {
				at.ServeHTTP(w, r)
				return
			}
			if requests = append(requests, r.Method+" "+r.URL.Path); r.Method == http.MethodGet {
				apiserver.Refuse(w, http.StatusNotFound, "not found")
			} else {
				apiserver.Refuse(w, http.StatusConflict, "already exists")
			}
		}))
		s.store.SetMembership(protocol.Membership{Fleet: here})
		s.membership.Fleet = here
		if err := s.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.lastWorks = []*work.Work{}
		test.change(s)
		done := make(chan error)
		go func() {
			job := manifestOf(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "smoke", "namespace": "checks"}})
			_, err := s.Jobs.Run(t.Context(), job.Object.Content)
			done <- err
		}()
		s.job = <-s.Jobs.Requests
		if err := s.handle(t.Context(), byJob); err != nil {
			t.Fatal(err)
		}
		if err := <-done; (err == nil) != test.want || (len(requests) > 0) != test.want {
			t.Errorf("%s: %v, requests %q", name, err, requests)
		}
		create := rbac.Permission{Verb: "create", Group: "batch", Resource: "jobs", Namespace: "checks"}
		if needs, _ := s.needs(); slices.Contains(needs, create) != test.want {
			t.Errorf("%s: the permissions are %v", name, needs)
		}
	}
}

// On a cluster that another fleet holds, a session writes nothing, and leaving the cluster
// releases nothing. Once the other fleet is gone, everything is reconciled.
func TestNothingIsWrittenToAForeignCluster(t *testing.T) {
	for _, woken := range []wakeReason{byFleet, byWorks, byCheck, byChanges, bySweep, byRetry} {
		at := apiserver.NewConfigMaps()
		keeps(t, memberOf(t, another, at), held(3))
		at.Writes = nil
		s := memberOf(t, here, at)
		s.sweeper.timer = time.NewTimer(time.Hour)
		s.lastWorks = []*work.Work{{Placement: web, Remove: true, AllowDelete: true}}
		if err := s.inventories.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.handle(t.Context(), woken); err != nil || len(at.Writes) > 0 || !s.observingOnly {
			t.Errorf("woken by %d: %v, written: %q, stood back: %v", woken, err, at.Writes, s.observingOnly)
		}
	}
}

func TestLeavingAForeignClusterReleasesNothing(t *testing.T) {
	at := apiserver.NewConfigMaps()
	keeps(t, memberOf(t, another, at), held(3))
	at.Writes = nil
	s := memberOf(t, here, at)
	if err := s.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.handle(ctx, byLeave) }()
	<-s.left
	cancel()
	if err := <-ended; err != nil || len(at.Writes) > 0 {
		t.Errorf("%v, written: %q", err, at.Writes)
	}
}

// On a cluster that another member of the fleet holds, or that is not the one that the fleet has
// identified, a session writes nothing, and leaving it releases nothing. Once the name is the only
// one of the cluster, everything is reconciled, and the claim names the member.
func TestNothingIsWrittenUnderASecondName(t *testing.T) {
	tests := map[string]struct {
		now  protocol.Membership
		uid  string
		held bool
	}{
		"the claim names another member": {protocol.Membership{Fleet: here, UID: "1"}, "1", true},
		"the fleet says so":              {protocol.Membership{Fleet: here, SameAs: "west"}, "1", true},
		"another cluster":                {protocol.Membership{Fleet: here, UID: "2", Formerly: "west"}, "1", true},
		"a cluster not identified yet":   {protocol.Membership{Fleet: here, Formerly: "west"}, "1", true},
		"a renamed member":               {protocol.Membership{Fleet: here, UID: "1", Formerly: "west"}, "1", false},
		"an identity that is not read":   {protocol.Membership{Fleet: here, UID: "1", Formerly: "west"}, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := apiserver.NewConfigMaps()
			first := memberOf(t, here, at)
			first.store = inventory.NewStore(first.conn, protocol.Membership{Fleet: here}, inventory.Config{
				Cluster: "west", Fleet: first.cfg.Fleet, Live: first.live, Record: first.record.setLive, Log: slog.New(slog.DiscardHandler),
			})
			keeps(t, first, held(3))
			at.Writes = nil
			s := memberOf(t, here, at)
			s.cfg.Log = slog.New(slog.DiscardHandler)
			s.sweeper.timer = time.NewTimer(time.Hour)
			s.store.SetMembership(test.now)
			s.store.SetIdentity(test.uid)
			s.membership = test.now
			s.lastWorks = []*work.Work{{Placement: web, Keep: true}}
			s.store.SetMembership(protocol.Membership{})
			if err := s.inventories.load(t.Context()); err != nil || s.store.Claimant() != "west" {
				t.Fatalf("before the fleet is known, the claim names %q (%v)", s.store.Claimant(), err)
			}
			s.store.SetMembership(test.now)
			if err := s.handle(t.Context(), byWorks); err != nil || s.observingOnly != test.held {
				t.Errorf("it only observes: %v, want %v (%v)", s.observingOnly, test.held, err)
			}
			if test.held == (len(at.Writes) > 0) {
				t.Errorf("written: %q", at.Writes)
			}
			if !test.held {
				if by := s.store.Claimant(); by != "east" {
					t.Errorf("the claim names %q", by)
				}
				return
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.handle(ctx, byLeave) }()
			<-s.left
			cancel()
			if err := <-ended; err != nil || len(at.Writes) > 0 {
				t.Errorf("%v, written: %q", err, at.Writes)
			}
		})
	}
}

// An adopted inventory is marked until all of its objects are desired.
func TestAdoptionEndsOnceAllObjectsAreDesired(t *testing.T) {
	s := memberOf(t, here, apiserver.NewConfigMaps())
	s.cfg.Log = slog.New(slog.DiscardHandler)
	inv := held(1)
	inv.Adopted = true
	s.lists(inv)
	s.replaceWorks([]*work.Work{{Placement: web}})
	if s.inventories.finishAdoption(inv); !inv.Adopted {
		t.Error("an inventory with an object that nobody wants is digested")
	}
	for it := range inv.Items.All() {
		inv.Items.Drop(it.ID())
	}
	if s.inventories.finishAdoption(inv); inv.Adopted {
		t.Error("an inventory that has only what is wanted is still adopted")
	}
}
