package inventory

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

var web = api.PlacementKey{Name: "web"}

// storeAt is a store of a fleet without an ID that talks to a server of the test.
func storeAt(t *testing.T, h http.Handler) *Store {
	t.Helper()
	return storeFor(t, protocol.Fleet{}, h)
}

// storeFor is a store of a fleet at the same server as others.
func storeFor(t *testing.T, f protocol.Fleet, h http.Handler) *Store {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return storeOn(t, f, srv.URL)
}

// storeOn is a store that talks to the server at a URL.
func storeOn(t testing.TB, f protocol.Fleet, url string) *Store {
	t.Helper()
	log, metrics := slog.New(slog.NewTextHandler(t.Output(), nil)), connection.NewMetrics()
	c, err := connection.New(connection.Config{Cluster: "east", Timeout: time.Minute, Metrics: &metrics, Log: log}, &rest.Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	objects := &observed.Objects{}
	record := func(id api.ID, l *observed.Object) {
		if objects.Drop(id); l != nil {
			objects.Put(id, l)
		}
	}
	return NewStore(c, protocol.Membership{Fleet: f}, Config{Cluster: "east", Fleet: "prod", Live: objects.View(), Record: record, Log: log})
}

func save(t *testing.T, st *Store, inv *Inventory) {
	t.Helper()
	if err := st.Save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, st *Store) List {
	t.Helper()
	all, err := st.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// held returns an inventory of some objects, and heavy one that needs several parts.
func held(n int) *Inventory      { return weighing(n, 32) }
func heavy(parts int) *Inventory { return weighing(7*parts-3, 1000) }

// smallParts makes parts small, so that an inventory can have several without being large.
func smallParts(t *testing.T) {
	was := partSize
	partSize = 7 << 10
	t.Cleanup(func() { partSize = was })
}

func weighing(n, size int) *Inventory {
	inv := New(web, placement.Revision{Commit: "c1", Hash: "h1"})
	sums := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	hash := func(bytes int) string {
		sum := make([]byte, bytes)
		sums.Read(sum)
		return hex.EncodeToString(sum)
	}
	for i := range n {
		it := Item{
			Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprintf("cm-%05d", i), Commit: "c1",
			Hash: hash(size), Managed: hash(8), UID: types.UID(hash(16)),
		}
		inv.Items.Put(it)
	}
	return inv
}

// same returns the differences of two inventories; empty if there are none.
func same(a, b *Inventory) string {
	switch {
	case a == nil || b == nil:
		return fmt.Sprintf("%v and %v", a, b)
	case a.Placement() != b.Placement() || a.Revision() != b.Revision() || a.Abandon != b.Abandon:
		return fmt.Sprintf("%v %v %v and %v %v %v", a.Placement(), a.Revision(), a.Abandon, b.Placement(), b.Revision(), b.Abandon)
	case a.Items.Len() != b.Items.Len():
		return fmt.Sprintf("%d and %d items", a.Items.Len(), b.Items.Len())
	}
	for it := range a.Items.All() {
		if other := b.Items.Of(it.ID()); other == nil || *other != it {
			return fmt.Sprintf("%v and %v", it, other)
		}
	}
	return ""
}

// An inventory is read back as it was written, equal inventories have equal bytes, and packing
// does not change an inventory.
func TestInventoryIsPackedAndUnpacked(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "a", "b", "apps", "v1", "Deployment", "x/y", "é\"\\"})
	rapid.Check(t, func(t *rapid.T) {
		inv := New(api.PlacementKey{Namespace: words.Draw(t, "namespace"), Name: words.Draw(t, "name")},
			placement.Revision{Commit: words.Draw(t, "commit"), Hash: words.Draw(t, "hash")})
		inv.Abandon = rapid.Bool().Draw(t, "abandon")
		for range rapid.IntRange(0, 20).Draw(t, "items") {
			it := Item{
				Group: words.Draw(t, "g"), Version: words.Draw(t, "v"), Kind: words.Draw(t, "k"), Namespace: words.Draw(t, "ns"), Name: words.Draw(t, "n"),
				Hash: words.Draw(t, "h"), Managed: words.Draw(t, "m"), UID: types.UID(words.Draw(t, "u")), Commit: words.Draw(t, "c"),
			}
			inv.Items.Put(it)
		}
		raw, digest, err := inv.pack()
		if err != nil {
			t.Fatal(err)
		}
		again, digestAgain, err := inv.pack()
		if err != nil || !bytes.Equal(raw, again) || digest != digestAgain {
			t.Fatalf("packed twice: %d and %d bytes, %s and %s, %v", len(raw), len(again), digest, digestAgain, err)
		}
		back, err := newUnpacking(t.Context()).unpack(raw)
		if err != nil {
			t.Fatal(err)
		}
		if why := same(inv, back); why != "" {
			t.Fatal(why)
		}
	})
}

// The name of an inventory is valid, contains the placement, and is different for another
// placement or fleet.
func TestInventoryNames(t *testing.T) {
	names := map[string]string{}
	for _, fleet := range []string{"prod", "test"} {
		for _, p := range []api.PlacementKey{
			{Name: "web"}, {Name: "a-b"}, {Namespace: "a", Name: "b"}, {Namespace: "crp", Name: "web"},
			{Name: strings.Repeat("x", 253)}, {Name: strings.Repeat("x", 252) + "y"},
		} {
			name := nameOf(fleet, p)
			if other, taken := names[name]; taken {
				t.Errorf("%s is the name for %s and for %s %s", name, other, fleet, p)
			}
			names[name] = fleet + " " + p.String()
			if len(partName(name, 999)) > 253 || strings.ToLower(name) != name || strings.ContainsAny(name, "/_ ") {
				t.Errorf("%s is no name for a ConfigMap", name)
			}
		}
	}
	if got := nameOf("prod", web); !strings.HasPrefix(got, "inventory-crp-web-") {
		t.Errorf("%s does not tell the placement", got)
	}
}

// A saved inventory can be read back, has the necessary number of parts, and saving it again
// sends no request.
func TestInventoryIsSavedOnce(t *testing.T) {
	smallParts(t)
	for parts, inv := range map[int]*Inventory{0: held(0), 1: held(50), 2: heavy(2), 3: heavy(3)} {
		parts = max(parts, 1)
		t.Run(fmt.Sprint(inv.Items.Len()), func(t *testing.T) {
			store := apiserver.NewConfigMaps()
			s := storeAt(t, store)
			save(t, s, inv)
			if got := len(store.Stored); got != parts {
				t.Errorf("%d items are in %d parts, want %d", inv.Items.Len(), got, parts)
			}
			for name, raw := range store.Stored {
				if len(raw) > partSize*4/3+1<<10 {
					t.Errorf("%s has %d bytes", name, len(raw))
				}
			}
			// the first part has the digest of all, so that it is written last
			if last := store.Writes[len(store.Writes)-1]; last != "PATCH "+nameOf("prod", web) {
				t.Errorf("written last: %s", last)
			}
			writes := len(store.Writes)
			if err := s.Save(t.Context(), inv); err != nil || len(store.Writes) != writes {
				t.Errorf("saved unchanged: %v, %v", store.Writes[writes:], err)
			}
			other := storeAt(t, store)
			read := load(t, other).Of(web)
			if why := same(inv, read); why != "" {
				t.Error(why)
			}
			if err := other.Save(t.Context(), read); err != nil || len(store.Writes) != writes {
				t.Errorf("saved as it was read: %v, %v", store.Writes[writes:], err)
			}
		})
	}
}

// No part remains of an inventory that becomes smaller or is dropped.
func TestInventoryShrinks(t *testing.T) {
	smallParts(t)
	store := apiserver.NewConfigMaps()
	s := storeAt(t, store)
	inv := heavy(3)
	if err := s.Save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Collect(inv.Items.IDs())[2:] {
		inv.Items.Drop(id)
	}
	if err := s.Save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	if want := []string{nameOf("prod", web)}; !slices.Equal(store.Names(), want) {
		t.Errorf("left: %v, want %v", store.Names(), want)
	}
	other := storeAt(t, store)
	read := load(t, other).Of(web)
	if why := same(inv, read); why != "" {
		t.Error(why)
	}
	if err := other.Delete(t.Context(), read); err != nil || len(store.Stored) > 0 {
		t.Errorf("after dropping: %v, %v", store.Names(), err)
	}
	if other.parts.Len() > 0 {
		t.Errorf("parts of a dropped inventory are watched: %v", other.parts)
	}
}

// A write that is interrupted at any point leaves the old inventory, the new one, or one that
// is not used, but never a mixture. The next write repairs it.
func TestInventoryTornWhileWriting(t *testing.T) {
	smallParts(t)
	small, large := held(5), heavy(3)
	tests := map[string]struct {
		first, second *Inventory
		changes       int // number of changes of the second write
	}{
		"growing":                 {small, large, 3},
		"shrinking":               {large, small, 3},
		"growing more":            {large, heavy(5), 5},
		"getting smaller":         {heavy(5), large, 5},
		"another one of the size": {large, weighing(17, 1000), 3},
	}
	for name, test := range tests {
		store := apiserver.NewConfigMaps()
		test.first.written = 0
		if err := storeAt(t, store).Save(t.Context(), test.first); err != nil {
			t.Fatal(err)
		}
		for intact := range test.changes {
			t.Run(fmt.Sprintf("%s, after %d changes", name, intact), func(t *testing.T) {
				store := store.Clone()
				s := storeAt(t, store)
				test.second.written, test.second.parts = 0, test.first.parts
				store.Intact = intact
				if err := s.Save(t.Context(), test.second); err == nil || test.second.written != 0 {
					t.Fatalf("%v, and it is thought to be written as %v", err, test.second.written)
				}
				store.Intact = -1
				other := storeAt(t, store)
				if got := load(t, other).Of(web); got != nil && same(got, test.first) != "" && same(got, test.second) != "" {
					t.Errorf("a mixture is believed: %s; %s", same(got, test.first), same(got, test.second))
				}
				if err := s.Save(t.Context(), test.second); err != nil {
					t.Fatal(err)
				}
				last := storeAt(t, store)
				if why := same(load(t, last).Of(web), test.second); why != "" {
					t.Errorf("written again: %s", why)
				}
				if want := max(1, int(test.second.parts)); len(store.Stored) != want {
					t.Errorf("written again: there are %v, want %d parts", store.Names(), want)
				}
			})
		}
	}
}

// A damaged inventory is not used, and does not prevent reading the others.
func TestDamagedInventoryIsNotBelieved(t *testing.T) {
	name := nameOf("prod", web)
	edit := func(do func(o map[string]any)) func(*apiserver.ConfigMaps, string) {
		return func(s *apiserver.ConfigMaps, part string) {
			var o map[string]any
			if err := json.Unmarshal(s.Stored[part], &o); err != nil {
				panic(err)
			}
			do(o)
			s.Stored[part], _ = json.Marshal(o)
		}
	}
	note := func(o map[string]any, key, value string) {
		o["metadata"].(map[string]any)["annotations"].(map[string]any)[key] = value
	}
	tests := map[string]struct {
		part   int
		damage func(s *apiserver.ConfigMaps, part string)
	}{
		"a part is gone":         {1, func(s *apiserver.ConfigMaps, part string) { delete(s.Stored, part) }},
		"the first is gone":      {0, func(s *apiserver.ConfigMaps, part string) { delete(s.Stored, part) }},
		"data is gone":           {0, edit(func(o map[string]any) { delete(o, "binaryData") })},
		"data is not base64":     {1, edit(func(o map[string]any) { o["binaryData"].(map[string]any)[dataKey] = "!" })},
		"data is something else": {1, edit(func(o map[string]any) { o["binaryData"].(map[string]any)[dataKey] = "YWJj" })},
		"the digest is another":  {0, edit(func(o map[string]any) { note(o, digestKey, "0123456789abcdef") })},
		"fewer parts":            {0, edit(func(o map[string]any) { note(o, partsKey, "1") })},
		"no parts":               {0, edit(func(o map[string]any) { note(o, partsKey, "0") })},
		"less than none":         {0, edit(func(o map[string]any) { note(o, partsKey, "-1") })},
		"very many parts":        {0, edit(func(o map[string]any) { note(o, partsKey, "999999999999") })},
		"the number is a word":   {0, edit(func(o map[string]any) { note(o, partsKey, "two") })},
	}
	smallParts(t)
	intact, fine := apiserver.NewConfigMaps(), addition(api.PlacementKey{Name: "fine"}, "one", "two")
	for _, inv := range []*Inventory{heavy(2), fine} {
		if err := storeAt(t, intact).Save(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			store := intact.Clone()
			test.damage(store, partName(name, test.part))
			other := storeAt(t, store)
			all := load(t, other)
			if got := all.Of(web); got != nil {
				t.Errorf("believed, with %d items", got.Items.Len())
			}
			if why := same(fine, all.Of(fine.Placement())); why != "" {
				t.Errorf("the other one: %s", why)
			}
		})
	}
}

// Invalid data is an error. It does not cause a panic, and is not read as an inventory that
// would delete everything.
func TestUnpackRefusesGarbage(t *testing.T) {
	raw, _, err := held(3).pack()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(raw) {
		if inv, err := newUnpacking(t.Context()).unpack(raw[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are an inventory of %d items", n, len(raw), inv.Items.Len())
		}
	}
	for _, text := range []string{"", "x", "\x1f\x8b", strings.Repeat("\x00", 100)} {
		if _, err := newUnpacking(t.Context()).unpack([]byte(text)); err == nil {
			t.Errorf("%q is an inventory", text)
		}
	}
}

// An inventory that was deleted, or is an earlier one than was written last, is noticed, also by
// another process that knows the serial number, and is written again with a higher number.
func TestEarlierInventoryIsNoticed(t *testing.T) {
	server := apiserver.NewConfigMaps()
	st := storeAt(t, server)
	save(t, st, held(1))
	backup := server.Clone()
	save(t, st, held(2))
	serial := st.cfg.Serials.Of(web)
	for name, test := range map[string]struct {
		at    *apiserver.ConfigMaps
		known uint64
		want  bool
	}{
		"the last one":         {server.Clone(), serial, false},
		"newer than known":     {server.Clone(), serial - 1, false},
		"nothing known":        {backup.Clone(), 0, false},
		"an earlier one":       {backup.Clone(), serial, true},
		"deleted":              {apiserver.NewConfigMaps(), serial, true},
		"deleted, and unknown": {apiserver.NewConfigMaps(), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := storeAt(t, test.at)
			if test.known > 0 {
				st.cfg.Serials.set(web, test.known)
			}
			all := load(t, st)
			if got := slices.Contains(st.SetBack(), web); got != test.want {
				t.Fatalf("set back: %v, want %t", st.SetBack(), test.want)
			}
			inv := all.Of(web)
			if inv == nil {
				inv = held(2)
			}
			writes := len(test.at.Writes)
			if save(t, st, inv); (len(test.at.Writes) > writes) != (test.want || all.Of(web) == nil) {
				t.Errorf("writes: %v", test.at.Writes[writes:])
			}
			if load(t, st); len(st.SetBack()) > 0 {
				t.Errorf("set back again: %v", st.SetBack())
			}
			if got := st.cfg.Serials.Of(web); test.want && got != serial+1 {
				t.Errorf("serial number %d, want %d", got, serial+1)
			}
		})
	}
}
