package member

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/owned"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// If two fleets of one name have both found an empty cluster, the one that creates the claim
// writes. The other one writes nothing and reports who holds the cluster.
func TestOnlyOneFleetClaimsAnEmptyCluster(t *testing.T) {
	at := apiserver.NewConfigMaps()
	first, second := memberOf(t, here, at), memberOf(t, another, at)
	for _, s := range []*session{first, second} {
		if err := s.inventories.load(t.Context()); err != nil || s.store.ClaimedByOther() {
			t.Fatalf("on an empty cluster: %v, foreign: %v", err, s.store.ClaimedByOther())
		}
	}
	keeps(t, first, held(3))
	before := at.Clone()
	at.Writes = nil
	second.replaceWorks([]*work.Work{{Placement: web}})
	second.lists(held(2))
	if err := second.store.Save(t.Context(), second.inventory(web)); err == nil || !second.store.ClaimedByOther() {
		t.Errorf("the second saves an inventory: %v, foreign: %v", err, second.store.ClaimedByOther())
	}
	var reported []protocol.Owner
	second.cfg.Report = func(o protocol.Observation) { reported = o.(protocol.ClusterSeen).Owners }
	if err := second.checkClaim(t.Context()); err != nil || !second.observingOnly {
		t.Errorf("the second does not stand back: %v", err)
	}
	if want := []protocol.Owner{{ID: "ours", Source: here.Source}}; !slices.Equal(reported, want) {
		t.Errorf("the second reports %v, want %v", reported, want)
	}
	if want := []string{"POST configmaps"}; !slices.Equal(at.Writes, want) || !slices.Equal(at.Names(), before.Names()) {
		t.Errorf("the second has asked for %q, and there is %q, was %q", at.Writes, at.Names(), before.Names())
	}
}

// The claim is deleted with the last inventory. While there are inventories, a missing or
// edited claim is restored.
func TestClaimLivesAsLongAsInventories(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	other := api.PlacementKey{Name: "other"}
	keeps(t, s, held(3))
	keeps(t, s, heldBy(other, 2))
	i := slices.IndexFunc(at.Names(), func(name string) bool { return strings.HasPrefix(name, "claim-") })
	id := api.ID{Kind: "ConfigMap", Namespace: api.Namespace, Name: at.Names()[i]}
	delete(at.Stored, id.Name)
	s.record.objects.Drop(id)
	s.inventories.restore(t.Context(), map[api.ID]bool{id: true})
	if !slices.Contains(at.Names(), id.Name) {
		t.Errorf("a deleted claim is not put back: %q", at.Names())
	}
	for _, p := range []api.PlacementKey{web, other} {
		s.inventory(p).Items = inventory.Items{}
		if !slices.Contains(at.Names(), id.Name) {
			t.Errorf("the claim is gone before the inventory of %s: %q", p, at.Names())
		}
		s.replaceWorks([]*work.Work{{Placement: p, Remove: true}})
		s.inventories.save(t.Context(), map[api.PlacementKey]bool{p: true})
	}
	if len(at.Names()) > 0 {
		t.Errorf("left: %q", at.Names())
	}
}

// The empty inventory of a deleted placement is deleted, and the placement is reported as removed,
// even if gitfleet has no other objects on the cluster.
func TestEmptyInventoryOfADeletedPlacementIsRemoved(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	keeps(t, s, held(0))
	var seen protocol.WorkSeen
	s.cfg.Report = func(o protocol.Observation) {
		if w, ok := o.(protocol.WorkSeen); ok {
			seen = w
		}
	}
	s.setWorks([]*work.Work{{Placement: web, Remove: true}})
	s.sync(t.Context())
	if !seen.Removed || len(at.Names()) > 0 {
		t.Errorf("removed: %t, left: %q", seen.Removed, at.Names())
	}
}

// Once handing over an object has found another fleet, nothing is deleted.
func TestNoDeletionAfterAHandOverFindsAnotherFleet(t *testing.T) {
	at := apiserver.NewConfigMaps()
	keeps(t, memberOf(t, another, at), held(1))
	at.Stored["two"] = []byte(strings.ReplaceAll(string(storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))), `"one"`, `"two"`))
	s, _ := recreatingAt(t, at, "uid of one")
	s.store.SetMembership(protocol.Membership{Fleet: here})
	two := oneManifest().ID
	two.Name = "two"
	s.inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "two", Hash: "hash", UID: "uid of two"})
	at.Writes = nil
	s.setWorks([]*work.Work{
		{Placement: web, Remove: true, AllowDelete: true},
		{Placement: api.PlacementKey{Name: "to"}, Keep: true, Awaited: []*work.Manifest{oneManifest()}},
	})
	s.processPrepared(t.Context(), map[api.ID]bool{oneManifest().ID: true, two: true})
	if !s.store.ClaimedByOther() || !slices.Equal(at.Writes, []string{"POST configmaps"}) {
		t.Errorf("foreign: %t, writes: %q", s.store.ClaimedByOther(), at.Writes)
	}
}

// An inventory that could not be written with new items is written again without them, since some
// of its parts may have been written.
func TestInventoryIsWrittenAgainAfterAFailure(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	keeps(t, s, held(1))
	s.replaceWorks([]*work.Work{{Placement: web, Keep: true}})
	added := map[api.PlacementKey][]inventory.Item{web: {{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}}}
	at.Intact = 0
	failed := s.inventories.grow(t.Context(), added, map[api.PlacementKey]bool{}, "announced")
	if inv := s.inventory(web); failed[web] == nil || s.owned.Owns(web, oneManifest().ID) || !s.inventories.unwritten(inv.View()) {
		t.Errorf("after %v, it lists the item: %t, is to be written: %t", failed[web], s.owned.Owns(web, oneManifest().ID), s.inventories.unwritten(inv.View()))
	}
	at.Intact, at.Writes = -1, nil
	s.inventories.save(t.Context(), map[api.PlacementKey]bool{web: true})
	if !slices.Contains(at.Writes, "PATCH "+inventory.FirstPart("prod", web).Name) {
		t.Errorf("written: %q", at.Writes)
	}
}

// What a pass adds for several placements is announced with one request, after which their inventories are written with another.
func TestNewObjectsOfSeveralPlacementsAreAnnouncedTogether(t *testing.T) {
	for n, want := range map[int]int{1: 2, 2: 4, 3: 3, 20: 3} {
		at := apiserver.NewConfigMaps()
		s := memberOf(t, here, at)
		s.replaceWorks(nil)
		var tasks []apply.Task
		for k := range n {
			p, m := api.PlacementKey{Name: fmt.Sprint("p", k)}, *oneManifest()
			m.ID.Name = fmt.Sprint("object", k)
			s.replaceWorks(append(s.Works(), &work.Work{Placement: p}))
			tasks = append(tasks, apply.Task{Object: desired.Object{Placement: p, Manifest: &m}, Res: inventory.ConfigMaps})
		}
		touched := map[api.PlacementKey]bool{}
		ready, failed := s.inventories.announce(t.Context(), tasks, touched)
		if len(ready) != n || len(failed) > 0 || len(touched) != n {
			t.Fatalf("of %d, %d are announced, %d have failed", n, len(ready), len(failed))
		}
		if after := memberOf(t, here, at); after.inventories.load(t.Context()) != nil || after.owned.Count() != n {
			t.Errorf("after a crash, %d of %d placements have inventories", after.owned.Count(), n)
		}
		for k := range n {
			s.inventory(tasks[k].Placement).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: tasks[k].Manifest.ID.Name, Hash: "applied"})
		}
		s.inventories.save(t.Context(), touched)
		if writes := slices.DeleteFunc(at.Writes, func(w string) bool { return w == "POST configmaps" }); len(writes) != want { // the claim
			t.Errorf("%d placements cost %d writes: %q", n, len(writes), writes)
		}
	}
}

// A changed inventory that cannot be written back is logged once, however many events report it, and
// is written again later. The history has it then.
func TestInventoryThatCannotBeRestoredIsLoggedOnce(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	keeps(t, s, held(1))
	s.replaceWorks([]*work.Work{{Placement: web}})
	id := inventory.FirstPart("prod", web)
	changed := *s.live.Of(id)
	changed.Managed = "theirs"
	s.record.objects.Put(id, &changed)
	var log strings.Builder
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var recorded []history.Entry
	s.cfg.Record = func(all ...history.Entry) { recorded = append(recorded, all...) }
	at.Intact = 0
	for range 3 {
		s.inventories.restore(t.Context(), map[api.ID]bool{id: true})
	}
	for _, line := range []string{"inventory was changed by somebody else", `by="another daemon of this fleet"`, "inventory not written"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%q is logged %d times", line, n)
		}
	}
	if !s.inventories.unwritten(s.inventory(web).View()) {
		t.Error("it is not written again")
	}
	if len(recorded) > 0 {
		t.Errorf("before it is written, the history has %+v", recorded)
	}
	at.Intact = -1
	for range 2 {
		s.inventories.save(t.Context(), map[api.PlacementKey]bool{web: true})
	}
	if len(recorded) != 1 || recorded[0].Event != history.Repaired {
		t.Errorf("once it is written, the history has %+v", recorded)
	}
}

// saveFour saves the inventories of four new placements together, and returns the placements.
func saveFour(t *testing.T, s *session) map[api.PlacementKey]bool {
	t.Helper()
	s.replaceWorks(nil)
	touched := map[api.PlacementKey]bool{}
	for n := range 4 {
		p := api.PlacementKey{Name: fmt.Sprint("p", n)}
		s.replaceWorks(append(s.Works(), &work.Work{Placement: p}))
		s.lists(heldBy(p, 1))
		touched[p] = true
	}
	s.inventories.save(t.Context(), touched)
	return touched
}

// What several inventories are in is put back with one request, and logged once.
func TestInventoriesThatWereWrittenTogetherArePutBackTogether(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	saveFour(t, s)
	var id api.ID
	for _, name := range at.Names() {
		if strings.HasPrefix(name, "inventories-") {
			id = api.ID{Kind: "ConfigMap", Namespace: api.Namespace, Name: name}
		}
	}
	delete(at.Stored, id.Name)
	s.record.objects.Drop(id)
	var log strings.Builder
	s.cfg.Log, at.Writes = slog.New(slog.NewTextHandler(&log, nil)), nil
	var recorded []history.Entry
	s.cfg.Record = func(all ...history.Entry) { recorded = append(recorded, all...) }
	for range 2 {
		s.inventories.restore(t.Context(), map[api.ID]bool{id: true})
	}
	if len(recorded) != 1 || recorded[0].Event != history.Repaired || recorded[0].Cluster != s.cfg.Name || recorded[0].Object != id.String() {
		t.Errorf("the history has %+v", recorded)
	}
	if n := strings.Count(log.String(), "inventory was changed by somebody else; putting it back\" cluster=east object="+id.String()+` by="unknown, since it was deleted"`); n != 1 || !slices.Equal(at.Writes, []string{"PATCH " + id.Name}) {
		t.Errorf("logged %d times, writes: %q", n, at.Writes)
	}
}

// If the server does not answer, only the inventories that have changed are to be written again, which is logged once.
func TestUnansweredWriteOfABundleConcernsWhatHasChanged(t *testing.T) {
	srv := httptest.NewServer(apiserver.NewConfigMaps())
	s := sessionOf(t, &rest.Config{Host: srv.URL})
	touched := saveFour(t, s)
	srv.Close()
	for n := range 3 {
		s.inventory(api.PlacementKey{Name: fmt.Sprint("p", n)}).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "new"})
	}
	var log strings.Builder
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.inventories.save(t.Context(), touched) // the open connection may fail in another way than a new one
	log.Reset()
	s.inventories.failures = retry.LogLimiter{}
	for range 2 {
		s.inventories.save(t.Context(), touched)
	}
	for _, inv := range s.inventories.owned.Inventories() {
		p := inv.Placement()
		if inv.Stored() != (p.Name == "p3") {
			t.Errorf("%v counts as stored: %t", p, inv.Stored())
		}
	}
	if n := strings.Count(log.String(), "not written"); n != 1 || !strings.Contains(log.String(), "placements=3") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// An inventory that lists an object also names the revision that added it. Otherwise, after the
// ledger is lost, the planner would take the revision before for the applied one, and the object
// would be deleted.
func TestInventoryHasTheRevisionThatAddedAnObject(t *testing.T) {
	web, v2 := api.PlacementKey{Name: "web"}, placement.Revision{Commit: "v2", Hash: "2"}
	server := apiserver.NewConfigMaps()
	before, after := sessionAt(t, server), sessionAt(t, server)
	before.replaceWorks([]*work.Work{{Placement: web, Revision: v2}})
	before.lists(inventory.New(web, placement.Revision{Commit: "v1", Hash: "1"}))
	before.inventories.announce(t.Context(), []apply.Task{{Object: desired.Object{Placement: web, Manifest: oneManifest()}, Res: inventory.ConfigMaps}}, map[api.PlacementKey]bool{})

	if err := after.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := after.inventory(web); got == nil || got.Revision() != v2 {
		t.Errorf("the cluster says %+v", got)
	}
}

// As many inventories are written at a time as objects, and each is recorded as written.
func TestInventoriesAreWrittenSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessionWith(t, Config{Concurrency: 4, Wrap: func(http.RoundTripper) http.RoundTripper { return slowServer{} }}, &rest.Config{Host: "http://127.0.0.1:1"})
		touched := map[api.PlacementKey]bool{}
		for i := range 8 {
			p := api.PlacementKey{Name: strconv.Itoa(i)}
			s.lists(heldBy(p, 200)) // too large to be written with others
			touched[p] = true
		}
		began := time.Now()
		s.inventories.save(t.Context(), touched)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("8 inventories took %s", took)
		}
		for _, inv := range s.inventories.owned.Inventories() {
			p := inv.Placement()
			if !inv.Stored() || s.Agent.serials.Of(p) != 1 {
				t.Errorf("%s is not recorded as written", p)
			}
		}
		again := time.Now()
		if s.inventories.save(t.Context(), touched); time.Since(again) != 0 {
			t.Error("they are written again")
		}
	})
}

// slowServer accepts any object after a second.
type slowServer struct{}

func (slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	body := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"` + path.Base(r.URL.Path) + `","namespace":"` + api.Namespace + `","uid":"u","resourceVersion":"1"}}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A cluster can have very many inventories that are removed. It ends with its context, and asks nothing of the store, which is missing here.
func TestRemovingInventoriesEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&inventories{}).removeAll(ctx, []*inventory.Inventory{{}})
}

// A cluster gets no more inventories than are read again: the objects of further placements are refused, and those that others
// would hand over stay where they are.
func TestPlacementsBeyondTheLimitAreRefused(t *testing.T) {
	at := apiserver.NewConfigMaps()
	s := memberOf(t, here, at)
	var all []*inventory.Inventory
	for n := range connection.MaxPlacements - 2 {
		p := api.PlacementKey{Name: fmt.Sprint("p", n)}
		s.lists(inventory.New(p, placement.Revision{}))
		all = append(all, s.inventory(p))
	}
	if rest, err := inventory.SaveTogether(t.Context(), s.store, all); err != nil || len(rest) > 0 {
		t.Fatalf("%d inventories are not written together: %v", len(rest), err)
	}
	var tasks []apply.Task
	for _, name := range []string{"new-c", "new-a", "new-b", "p1"} {
		p, m := api.PlacementKey{Name: name}, *oneManifest()
		m.ID.Name = name
		s.replaceWorks(append(s.Works(), &work.Work{Placement: p}))
		tasks = append(tasks, apply.Task{Object: desired.Object{Placement: p, Manifest: &m}, Res: inventory.ConfigMaps})
	}
	touched := map[api.PlacementKey]bool{}
	ready, failed := s.inventories.announce(t.Context(), slices.Clone(tasks), touched)
	if len(ready) != 3 || len(failed) != 1 || failed[0].Placement.Name != "new-c" {
		t.Fatalf("%d objects are announced, %d refused: %v", len(ready), len(failed), failed)
	}
	if want := "at most 10000 placements"; !strings.Contains(failed[0].Cond.Message(), want) {
		t.Errorf("the object is refused with %q, want %q", failed[0].Cond.Message(), want)
	}
	listed := s.inventory(api.PlacementKey{Name: "p1"}).Items.Of(tasks[3].Manifest.ID)
	full := api.PlacementKey{Name: "new-c"}
	if failed := s.inventories.handOver(t.Context(), []owned.Stale{{Inventory: all[1].View(), Item: listed, NewOwner: full}}, touched); failed[full] == nil || s.inventory(full) != nil {
		t.Errorf("handed over: %v", failed)
	}
	s.inventories.save(t.Context(), touched)
	after := memberOf(t, here, at)
	if err := after.inventories.load(t.Context()); err != nil || after.owned.Count() != connection.MaxPlacements {
		t.Fatalf("%d inventories are read: %v", after.owned.Count(), err)
	}
	gone := api.PlacementKey{Name: "p2"}
	after.replaceWorks([]*work.Work{{Placement: gone, Remove: true}, {Placement: tasks[0].Placement}})
	after.inventories.save(t.Context(), map[api.PlacementKey]bool{gone: true})
	if ready, failed = after.inventories.announce(t.Context(), tasks[:1], touched); len(ready) != 1 || len(failed) != 0 {
		t.Errorf("after one has gone, %d objects are announced, %d refused", len(ready), len(failed))
	}
}
