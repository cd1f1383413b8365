package inventory

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// several returns inventories of one object each, of some placements.
func several(names ...string) (out []*Inventory) {
	for _, name := range names {
		out = append(out, addition(api.PlacementKey{Name: name}, "object-"+name))
	}
	return out
}

// saveTogether saves inventories as an agent does.
func saveTogether(t *testing.T, st *Store, all ...*Inventory) {
	t.Helper()
	for _, inv := range together(t, st, all) {
		save(t, st, inv)
	}
}

// together returns what cannot be written together.
func together(t *testing.T, st *Store, all []*Inventory) []*Inventory {
	t.Helper()
	rest, err := SaveTogether(t.Context(), st, all)
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

// configMapOf returns the ID of the ConfigMap that an inventory is in.
func configMapOf(st *Store, p api.PlacementKey) api.ID {
	if st.bundle.counting.Of(p) != nil {
		return bundleID(st.cfg.Fleet)
	}
	return FirstPart(st.cfg.Fleet, p)
}

// Inventories that change together take one request, until one of them changes alone: that has a ConfigMap of its own
// from then on. The bundle is gone with the last inventory in it.
func TestInventoriesOfSeveralPlacementsAreWrittenTogether(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st, id := storeAt(t, at), bundleID("prod")
	all := several("a", "b", "c", "d")
	saveTogether(t, st, all...)
	saveTogether(t, st, all...)
	if !slices.Equal(at.Writes, []string{"PATCH " + id.Name}) {
		t.Fatalf("writes: %q", at.Writes)
	}
	again := storeAt(t, at)
	got := load(t, again)
	for _, inv := range all {
		if why := same(got.Of(inv.Placement()), inv); why != "" || !got.Of(inv.Placement()).Stored() {
			t.Errorf("%v: %s, stored: %t", inv.Placement(), why, got.Of(inv.Placement()).Stored())
		}
		if configMapOf(again, inv.Placement()) != id {
			t.Errorf("%v is in %v", inv.Placement(), configMapOf(again, inv.Placement()))
		}
	}
	at.Writes = nil
	saveTogether(t, again, got...)
	if len(at.Writes) > 0 {
		t.Errorf("what was read is written again: %q", at.Writes)
	}

	all[0].SetRevision(placement.Revision{Commit: "c3"})
	saveTogether(t, st, all[0])
	if first := FirstPart("prod", all[0].Placement()); !slices.Equal(at.Writes, []string{"PATCH " + first.Name}) || configMapOf(st, all[0].Placement()) != first {
		t.Errorf("one has changed, writes: %q", at.Writes)
	}
	for _, inv := range all[1:] {
		inv.SetRevision(placement.Revision{Commit: "c4"})
	}
	at.Writes = nil
	saveTogether(t, st, all...)
	if !slices.Equal(at.Writes, []string{"PATCH " + id.Name}) {
		t.Errorf("three have changed, writes: %q", at.Writes)
	}
	got = load(t, storeAt(t, at))
	for _, inv := range all {
		if why := same(got.Of(inv.Placement()), inv); why != "" {
			t.Errorf("%v: %s", inv.Placement(), why)
		}
	}
	if back, err := SetBackSince(t.Context(), st, all); back || err != nil {
		t.Errorf("set back: %t, %v", back, err)
	}
	for _, inv := range all {
		if err := st.Delete(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
	if len(at.Stored) > 0 || st.Has(id) {
		t.Errorf("left: %q", at.Names())
	}
}

// A few that have changed do not rewrite many others.
func TestFewInventoriesOfABundleAreWrittenAlone(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	all := several("a", "b", "c", "d", "e", "f", "g")
	saveTogether(t, st, all...)
	for _, inv := range all[:3] {
		inv.SetRevision(placement.Revision{Commit: "c3"})
	}
	if rest := together(t, st, all); !slices.Equal(rest, all[:3]) {
		t.Errorf("%d are left", len(rest))
	}
	large := heavy(3)
	if rest := together(t, st, append(several("x", "y"), large)); len(rest) != 3 {
		t.Errorf("two and a large one: %d are left", len(rest))
	}
}

// A bundle that was deleted or set back is noticed, as an inventory is.
func TestEarlierBundleIsNoticed(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st, id := storeAt(t, at), bundleID("prod")
	all := several("a", "b", "c")
	saveTogether(t, st, all...)
	earlier := at.Clone()
	for _, inv := range all {
		inv.SetRevision(placement.Revision{Commit: "c3"})
	}
	saveTogether(t, st, all...)
	for name, stored := range map[string][]byte{"deleted": nil, "set back": earlier.Stored[id.Name]} {
		if at.Stored[id.Name] = stored; stored == nil {
			delete(at.Stored, id.Name)
		}
		if back, err := SetBackSince(t.Context(), st, all); !back || err != nil {
			t.Errorf("%s: noticed: %t, %v", name, back, err)
		}
		later := storeAt(t, at)
		*later.cfg.Serials = slices.Clone(*st.cfg.Serials)
		if load(t, later); len(later.SetBack()) != 3 {
			t.Errorf("%s: after a restart: %v", name, later.SetBack())
		}
	}
}

// A damaged bundle harms no other inventory. The next inventory that may be bundled replaces it.
func TestDamagedBundle(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st, id := storeAt(t, at), bundleID("prod")
	saveTogether(t, st, several("a", "b", "c")...)
	at.Stored[id.Name] = []byte(strings.Replace(string(at.Stored[id.Name]), `"inventory":"`, `"inventory":"A`, 1))
	again := storeAt(t, at)
	*again.cfg.Serials = slices.Clone(*st.cfg.Serials)
	if got := load(t, again); len(got) > 0 || len(again.SetBack()) > 0 {
		t.Errorf("%d inventories, set back: %v", len(got), again.SetBack())
	}
	save(t, again, held(1))
	if at.Stored[id.Name] == nil {
		t.Fatal("it is deleted")
	}
	srv := httptest.NewServer(at)
	defer srv.Close()
	if got, err := Holdings(t.Context(), &rest.Config{Host: srv.URL}); err != nil || len(got) != 2 || got[0].Placement != "" || !strings.Contains(got[0].Damaged, "bundle") {
		t.Errorf("holdings: %+v, %v", got, err)
	}
	saveTogether(t, again, several("a")...)
	last := storeAt(t, at)
	*last.cfg.Serials = slices.Clone(*st.cfg.Serials)
	if got := load(t, last); len(got) != 2 || len(last.damaged) > 0 || len(last.SetBack()) != 2 {
		t.Errorf("%d inventories, %d damaged, set back: %v", len(got), len(last.damaged), last.SetBack())
	}
}

// An inventory whose own ConfigMap is damaged is written into that again, with a higher serial number, also if the ledger was lost.
func TestDamagedInventoryLeavesTheBundleAlone(t *testing.T) {
	at := apiserver.NewConfigMaps()
	all := several("a", "b", "c", "d")
	st, first := storeAt(t, at), FirstPart("prod", all[0].Placement()).Name
	st.cfg.Serials.set(all[0].Placement(), 6)
	save(t, st, all[0])
	at.Stored[first] = []byte(strings.Replace(string(at.Stored[first]), `"inventory":"`, `"inventory":"A`, 1))
	again := storeAt(t, at)
	if got := load(t, again); len(got) > 0 || len(again.damaged) != 1 {
		t.Fatalf("%d inventories, %d damaged", len(got), len(again.damaged))
	}
	all = several("a", "b", "c", "d")
	saveTogether(t, again, all...)
	later := storeAt(t, at)
	got := load(t, later)
	for _, inv := range all {
		if why := same(got.Of(inv.Placement()), inv); why != "" {
			t.Errorf("%v: %s", inv.Placement(), why)
		}
	}
	if n := got.Of(all[0].Placement()).serial; n != 8 || len(later.damaged) > 0 || isDamaged(again, all[0].Placement()) {
		t.Errorf("serial %d, %d damaged", n, len(later.damaged))
	}
}

// After a write of the bundle whose response was lost, one that exists is not taken for set back, and one that is missing is.
func TestBundleWithUnknownDigestIsNotSetBack(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	all := several("a", "b", "c")
	saveTogether(t, st, all...)
	st.bundle.digest = ""
	if back, err := SetBackSince(t.Context(), st, all); back || err != nil {
		t.Errorf("set back: %t, %v", back, err)
	}
	delete(at.Stored, bundleID("prod").Name)
	if back, err := SetBackSince(t.Context(), st, all); !back || err != nil {
		t.Errorf("deleted, set back: %t, %v", back, err)
	}
}

// An inventory that is written with the bundle because of others is adopted like one that is saved, and leaves the announcement.
func TestRewrittenBundleAdoptsAndAnnouncesNothing(t *testing.T) {
	at := apiserver.NewConfigMaps()
	theirs := storeFor(t, another, at)
	saveTogether(t, theirs, several("a", "b", "c")...)
	st := storeFor(t, here, at)
	st.membership.Adopted = []protocol.Adoption{{Cluster: "east", ID: "theirs", By: "sam"}}
	got := load(t, st)
	b := got.Of(api.PlacementKey{Name: "b"})
	if !announce(t, st, addition(b.Placement(), "new")) {
		t.Fatal("not announced")
	}
	if err := RemoveTogether(t.Context(), st, got.Of(api.PlacementKey{Name: "a"})); err != nil {
		t.Fatal(err)
	}
	if !b.Adopted || len(st.announced) > 0 || at.Stored[announcementID("prod").Name] != nil {
		t.Errorf("adopted: %t, announced: %d", b.Adopted, len(st.announced))
	}
}

// A bundle that is written because of some inventories leaves the time of others as it is: what was applied to their objects before
// may not be known.
func TestTimeOfAnInventoryIsThatOfItsLastChange(t *testing.T) {
	at, clock := apiserver.NewConfigMaps(), "2026-01-01T00:00:00Z"
	st := storeAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if raw, _ := io.ReadAll(r.Body); r.Method == http.MethodPatch {
			entry := `"metadata":{"managedFields":[{"manager":"` + api.FieldManager + `","operation":"Apply","time":"` + clock + `"}],`
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(raw), `"metadata":{`, entry, 1)))
		}
		at.ServeHTTP(w, r)
	}))
	all := several("a", "b", "c", "d")
	saveTogether(t, st, all...)
	got := load(t, st)
	first := got.Of(all[0].Placement()).Applied()
	clock = "2026-01-01T00:01:00Z"
	for _, inv := range all[1:] {
		got.Of(inv.Placement()).SetRevision(placement.Revision{Commit: "c3"})
	}
	saveTogether(t, st, got...)
	if same, changed := got.Of(all[0].Placement()).Applied(), got.Of(all[1].Placement()).Applied(); first == 0 || same != first || changed != first+60 {
		t.Errorf("loaded %d, unchanged %d, changed %d", first, same, changed)
	}
	got.Of(all[0].Placement()).SetRevision(placement.Revision{Commit: "c4"})
	clock = "2026-01-01T00:02:00Z"
	saveTogether(t, st, got.Of(all[0].Placement()))
	if alone := got.Of(all[0].Placement()).Applied(); alone != first+120 || load(t, st).Of(all[0].Placement()).Applied() != alone {
		t.Errorf("written alone %d, loaded first %d", alone, first)
	}
}

// Holdings has the inventories of a bundle, and of those that left it the newer ones.
func TestHoldingsOfABundle(t *testing.T) {
	at := apiserver.NewConfigMaps()
	st := storeAt(t, at)
	all := several("a", "b", "c")
	saveTogether(t, st, all...)
	all[1].Items.Put(Item{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "second"})
	saveTogether(t, st, all[1])
	announce(t, st, addition(all[0].Placement(), "new"))
	srv := httptest.NewServer(at)
	defer srv.Close()
	got, err := Holdings(t.Context(), &rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, h := range got {
		counts = append(counts, len(h.Objects))
	}
	if !slices.Equal(counts, []int{2, 2, 1}) {
		t.Errorf("got %+v", got)
	}
}

// Whatever is saved and deleted, and whichever requests fail or lose their responses: what is read after a crash is
// what was saved last, or what a request that failed since would have left.
func TestInventoriesSurviveLostResponses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		at := apiserver.NewConfigMaps()
		failing := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "refused", "lost"}), 0, 40).Draw(r, "failing")
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodGet || len(failing) == 0 {
				at.ServeHTTP(w, req)
				return
			}
			how := failing[0]
			failing = failing[1:]
			switch how {
			case "lost":
				at.ServeHTTP(httptest.NewRecorder(), req)
				fallthrough
			case "refused":
				apiserver.Refuse(w, http.StatusBadRequest, how)
			default:
				at.ServeHTTP(w, req)
			}
		}))
		defer srv.Close()
		m := crashModel{possible: map[api.PlacementKey][]string{}, st: storeOn(t, protocol.Fleet{}, srv.URL)}
		for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
			var some []api.PlacementKey
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.ID[string]).Draw(r, "placements") {
				some = append(some, api.PlacementKey{Name: name})
			}
			switch rapid.SampledFrom([]string{"save", "save", "delete", "crash"}).Draw(r, "what") {
			case "save":
				m.save(t, some, fmt.Sprint("c", step))
			case "delete":
				m.delete(t, some)
			case "crash":
				m.crash(r, t, srv.URL)
			}
		}
		m.crash(r, t, srv.URL)
	})
}

// A crashModel knows what may be stored of each placement: the commits of the inventories, and empty for none.
type crashModel struct {
	possible map[api.PlacementKey][]string
	inv      List
	st       *Store
}

func (m *crashModel) save(t *testing.T, some []api.PlacementKey, commit string) {
	var all []*Inventory
	for _, p := range some {
		if m.inv.Of(p) == nil {
			m.inv.Put(addition(p, "one"))
		}
		m.inv.Of(p).SetRevision(placement.Revision{Commit: commit})
		m.maybe(p, commit)
		all = append(all, m.inv.Of(p))
	}
	failed := map[*Inventory]bool{}
	for _, inv := range together(t, m.st, all) {
		if failed[inv] = m.st.Save(t.Context(), inv) != nil; failed[inv] {
			inv.Invalidate()
		}
	}
	for _, inv := range all {
		if !failed[inv] {
			m.possible[inv.Placement()] = []string{commit}
		}
	}
}

func (m *crashModel) delete(t *testing.T, some []api.PlacementKey) {
	for _, p := range some {
		if m.inv.Of(p) == nil {
			continue
		}
		m.maybe(p, "")
		if m.st.Delete(t.Context(), m.inv.Of(p)) == nil {
			m.inv.Drop(p)
			m.possible[p] = nil
		} else {
			m.inv.Of(p).Invalidate()
		}
	}
}

// maybe adds what may be stored of a placement once a request was sent.
func (m *crashModel) maybe(p api.PlacementKey, commit string) {
	if m.possible[p] == nil {
		m.possible[p] = []string{""}
	}
	m.possible[p] = append(m.possible[p], commit)
}

func (m *crashModel) crash(r *rapid.T, t *testing.T, url string) {
	m.st = storeOn(t, protocol.Fleet{}, url)
	var err error
	if m.inv, err = m.st.Load(t.Context()); err != nil {
		r.Fatal(err)
	}
	for p, possible := range m.possible {
		commit := ""
		if m.inv.Of(p) != nil {
			commit = m.inv.Of(p).Revision().Commit
		}
		if possible != nil && !slices.Contains(possible, commit) || possible == nil && commit != "" {
			r.Fatalf("%v has %q, wanted one of %q", p, commit, possible)
		}
		if m.possible[p] = []string{commit}; commit == "" {
			m.possible[p] = nil
		}
	}
}
