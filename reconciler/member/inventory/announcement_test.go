package inventory

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// addition is what is about to be added to the inventory of a placement.
func addition(p api.PlacementKey, names ...string) *Inventory {
	inv := New(p, placement.Revision{Commit: "c2", Hash: "h2"})
	for _, name := range names {
		inv.Items.Put(Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: name})
	}
	return inv
}

// announce announces the objects of some inventories.
func announce(t testing.TB, st *Store, all ...*Inventory) bool {
	added := map[api.PlacementKey][]Item{}
	for _, inv := range all {
		added[inv.Placement()] = slices.Collect(inv.Items.All())
	}
	return Announce(t.Context(), st, all, added)
}

// namesIn returns the names of the objects of an inventory, sorted.
func namesIn(inv *Inventory) (out []string) {
	if inv == nil {
		return nil
	}
	for it := range inv.Items.All() {
		out = append(out, it.Name)
	}
	return out
}

// After a crash, an inventory has what was announced for it, until it was written after the announcement.
// The announcement is gone with the last inventory that is written.
func TestAnnouncedObjectsAreInInventories(t *testing.T) {
	a, b, c := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}, api.PlacementKey{Name: "c"}
	at := apiserver.NewConfigMaps()
	before := addition(a, "old")
	save(t, storeAt(t, at), before)
	st := storeAt(t, at)
	all := load(t, st)
	if !announce(t, st, addition(a, "new"), addition(b, "one", "two"), addition(c)) {
		t.Fatal("not announced")
	}
	if announce(t, st, addition(c, "three")) {
		t.Error("an announcement that counts is replaced")
	}

	later := storeAt(t, at)
	got := load(t, later)
	if !slices.Equal(namesIn(got.Of(a)), []string{"new", "old"}) || !slices.Equal(namesIn(got.Of(b)), []string{"one", "two"}) || got.Of(a).Revision().Commit != "c2" {
		t.Fatalf("after a crash: %v, %v", namesIn(got.Of(a)), namesIn(got.Of(b)))
	}
	if got.Of(a).Stored() || got.Of(b).Stored() {
		t.Error("an inventory without what was announced for it is not written again")
	}

	all.Of(a).SetRevision(placement.Revision{Commit: "c3"})
	save(t, st, all.Of(a))
	one := addition(b, "one")
	save(t, st, one)
	if got := load(t, storeAt(t, at)); !slices.Equal(namesIn(got.Of(a)), []string{"old"}) || !slices.Equal(namesIn(got.Of(b)), []string{"one"}) || got.Of(c) == nil {
		t.Errorf("once two are written: %v, %v, %v", namesIn(got.Of(a)), namesIn(got.Of(b)), got.Of(c))
	}
	three := addition(c, "three")
	save(t, st, three)
	id := announcementID("prod")
	if at.Stored[id.Name] != nil || st.Has(id) {
		t.Error("the announcement is still there")
	}
	st.cfg.Record(id, &observed.Object{Fleet: "prod", Version: 7}) // an event that arrives late
	if got := st.WrittenByOthers(map[api.ID]bool{id: true}); len(got) > 0 {
		t.Errorf("taken for that of another fleet: %v", got)
	}
}

// What is left of an announcement that counts no longer is deleted with the next inventory that is written,
// also after a crash.
func TestAnnouncementOfACrashIsDeleted(t *testing.T) {
	a, b := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	announce(t, st, addition(a, "one"), addition(b, "two"))
	again := storeAt(t, at)
	for p, inv := range load(t, again) {
		if err := again.Delete(t.Context(), inv); err != nil {
			t.Fatal(p, err)
		}
	}
	if id := announcementID("prod"); at.Stored[id.Name] != nil {
		t.Error("the announcement is still there")
	}
}

// An announcement that is written again after it was read, without a placement that is deleted, still counts for the others.
func TestAnnouncementStillCountsAfterItWasRead(t *testing.T) {
	a, b := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	before := addition(a, "old")
	save(t, st, before)
	if !announce(t, st, addition(a, "new"), addition(b, "two")) {
		t.Fatal("not announced")
	}
	again := storeAt(t, at)
	if err := again.Delete(t.Context(), load(t, again).Of(b)); err != nil {
		t.Fatal(err)
	}
	if got := load(t, storeAt(t, at)); !slices.Equal(namesIn(got.Of(a)), []string{"new", "old"}) {
		t.Errorf("a has %v", namesIn(got.Of(a)))
	}
}

// The inventory of a placement that is deleted does not come back with an announcement that still counts for others, or
// that was written although the response was lost.
func TestDeletedInventoryIsAnnouncedNoLonger(t *testing.T) {
	a, b := api.PlacementKey{Name: "a"}, api.PlacementKey{Name: "b"}
	for _, lost := range []bool{false, true} {
		at := apiserver.NewConfigMaps()
		st := storeAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if lost && strings.HasSuffix(r.URL.Path, announcementID("prod").Name) && r.Method == http.MethodPatch {
				at.ServeHTTP(httptest.NewRecorder(), r)
				apiserver.Refuse(w, http.StatusInternalServerError, "the response is lost")
				return
			}
			at.ServeHTTP(w, r)
		}))
		if done := announce(t, st, addition(a, "one"), addition(b, "two")); done == lost {
			t.Fatalf("lost: %t, announced: %t", lost, done)
		}
		inv := addition(a, "one")
		save(t, st, inv)
		if err := st.Delete(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
		if got := load(t, storeAt(t, at)); got.Of(a) != nil || !lost && !slices.Equal(namesIn(got.Of(b)), []string{"two"}) {
			t.Errorf("lost: %t: a has %v, b has %v", lost, namesIn(got.Of(a)), namesIn(got.Of(b)))
		}
	}
}

// Many inventories are taken out of the announcement with one request, also those that it still has although they are written.
func TestAnnouncedInventoriesAreRemovedTogether(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st, id := storeAt(t, at), announcementID("prod")
	all := several("a", "b", "c", "d")
	if !announce(t, st, all...) {
		t.Fatal("not announced")
	}
	save(t, st, all[0])
	intact := at.Intact
	at.Writes, at.Intact = nil, 0
	if err := RemoveTogether(t.Context(), st, all[:3]...); err == nil || !IsTogether(st, all[0].Placement()) {
		t.Errorf("the server fails: %v", err)
	}
	at.Writes, at.Intact = nil, intact
	if err := RemoveTogether(t.Context(), st, all[:3]...); err != nil {
		t.Fatal(err)
	}
	for _, inv := range all[:3] {
		if err := st.Delete(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(at.Writes), func(w string) bool { return !strings.HasSuffix(w, id.Name) })); n != 1 || IsTogether(st, all[0].Placement()) {
		t.Errorf("writes: %q", at.Writes)
	}
	if got := load(t, storeAt(t, at)); len(got) != 1 || got.Of(all[3].Placement()) == nil {
		t.Errorf("%d inventories are left", len(got))
	}
}

// One that does not fit in a ConfigMap, or cannot be written, leaves it to the inventories.
func TestAnnouncementIsRefused(t *testing.T) {
	smallParts(t)
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	if announce(t, st, heavy(2)) || len(at.Stored) > 0 {
		t.Errorf("two parts are announced: %d", len(at.Stored))
	}
	at.Intact = 0
	if announce(t, st, addition(web, "one")) {
		t.Error("announced although the server fails")
	}
}

// A damaged announcement harms no inventory.
func TestDamagedAnnouncement(t *testing.T) {
	for _, data := range []string{"", "!", "H4sIAAAA"} {
		at := apiserver.NewConfigMaps()
		st := storeAt(t, at)
		inv := held(1)
		save(t, st, inv)
		id := announcementID("prod")
		at.Stored[id.Name] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"labels":{%q:"prod",%q:%q}},"binaryData":{"inventory":%q}}`,
			id.Name, api.Namespace, api.ManagedByLabel, label, announcementPart, data)
		again := storeAt(t, at)
		if why := same(load(t, again).Of(web), inv); why != "" {
			t.Errorf("%q: %s", data, why)
		}
		inv.Invalidate()
		save(t, again, inv)
		if at.Stored[id.Name] != nil {
			t.Errorf("%q is not deleted", data)
		}
	}
}
