package member

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/watch"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// sessionAt returns a session that uses a test server.
func sessionAt(t *testing.T, h http.Handler) *session {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return sessionOf(t, &rest.Config{Host: srv.URL})
}

func sessionOf(t *testing.T, cfg *rest.Config) *session {
	t.Helper()
	return sessionWith(t, Config{}, cfg)
}

func sessionWith(t *testing.T, member Config, credentials *rest.Config) *session {
	t.Helper()
	member.Name, member.Fleet, member.Encoder = "east", "prod", NewEncoder("prod", "")
	member.Log, member.Report = slog.New(slog.NewTextHandler(t.Output(), nil)), func(ledger.Observation) {}
	a := New(member)
	c, err := connection.New(a.connection, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	known := discovery.New(c.Discovery)
	w := watch.New(c, watch.Config{Cluster: member.Name, Restarts: a.cfg.Metrics.WatchRestarts, Log: a.cfg.Log})
	s := &session{Agent: a, conn: c, watch: w, expressions: availability.New(&a.cfg.Encoder.expressions), kinds: known, finder: discovery.NewFinder(c, known), inv: map[api.PlacementKey]*inventory{}, live: observed.Objects{}}
	return s
}

// A shelf is an API server that only has ConfigMaps, which can be created, applied, read,
// listed and deleted. After a number of changes it fails.
type shelf struct {
	mu     sync.Mutex
	maps   map[string]json.RawMessage
	done   []string // the changes, in order
	intact int      // changes until it fails; never if negative
}

func newShelf() *shelf { return &shelf{maps: map[string]json.RawMessage{}, intact: -1} }

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	if r.Method != http.MethodGet {
		if s.intact == 0 {
			apiserver.Refuse(w, http.StatusServiceUnavailable, "broken")
			return
		}
		s.intact--
		s.done = append(s.done, r.Method+" "+name)
	}
	switch {
	case r.Method == http.MethodPost:
		raw, _ := io.ReadAll(r.Body)
		var o struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(raw, &o); err != nil || s.maps[o.Metadata.Name] != nil {
			apiserver.Refuse(w, http.StatusConflict, "already exists")
			return
		}
		s.maps[o.Metadata.Name] = raw
		w.WriteHeader(http.StatusCreated)
		w.Write(stored(o.Metadata.Name, raw))
	case r.Method == http.MethodGet && name != "configmaps":
		if s.maps[name] == nil {
			apiserver.Refuse(w, http.StatusNotFound, "not found")
			return
		}
		w.Write(stored(name, s.maps[name]))
	case r.Method == http.MethodPatch:
		raw, _ := io.ReadAll(r.Body)
		s.maps[name] = raw
		w.Write(stored(name, raw))
	case r.Method == http.MethodDelete && s.maps[name] == nil:
		apiserver.Refuse(w, http.StatusNotFound, "not found")
	case r.Method == http.MethodDelete:
		delete(s.maps, name)
		json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	default:
		var items []json.RawMessage
		for _, name := range slices.Sorted(maps.Keys(s.maps)) {
			items = append(items, s.maps[name])
		}
		json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{}, "items": items})
	}
}

// stored returns an object as the shelf sends it.
func stored(name string, raw []byte) []byte {
	return bytes.Replace(raw, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"uid of `+name+`",`), 1)
}

func (s *shelf) clone() *shelf { return &shelf{maps: maps.Clone(s.maps), intact: -1} }

func (s *shelf) names() []string { return slices.Sorted(maps.Keys(s.maps)) }

// held returns an inventory of some objects, and heavy one that needs several parts.
func held(n int) *inventory      { return weighing(n, 32) }
func heavy(parts int) *inventory { return weighing(7*parts-3, 1000) }

// smallParts makes parts small, so that an inventory can have several without being large.
func smallParts(t *testing.T) {
	was := partSize
	partSize = 7 << 10
	t.Cleanup(func() { partSize = was })
}

func weighing(n, size int) *inventory {
	inv := &inventory{
		Placement: web, Revision: placement.Revision{Commit: "c1", Hash: "h1"}, items: items{},
	}
	sums := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	hash := func(bytes int) string {
		sum := make([]byte, bytes)
		sums.Read(sum)
		return hex.EncodeToString(sum)
	}
	for i := range n {
		it := item{
			Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprintf("cm-%05d", i), Commit: "c1",
			Hash: hash(size), Managed: hash(8), UID: types.UID(hash(16)),
		}
		inv.items.put(it)
	}
	return inv
}

// same returns the differences of two inventories; empty if there are none.
func same(a, b *inventory) string {
	switch {
	case a == nil || b == nil:
		return fmt.Sprintf("%v and %v", a, b)
	case a.Placement != b.Placement || a.Revision != b.Revision || a.Abandon != b.Abandon:
		return fmt.Sprintf("%v %v %v and %v %v %v", a.Placement, a.Revision, a.Abandon, b.Placement, b.Revision, b.Abandon)
	case len(a.items.Map) != len(b.items.Map):
		return fmt.Sprintf("%d and %d items", len(a.items.Map), len(b.items.Map))
	}
	for it := range a.items.all() {
		if other := b.items.of(it.id()); other == nil || *other != it {
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
		inv := &inventory{
			Placement: api.PlacementKey{Namespace: words.Draw(t, "namespace"), Name: words.Draw(t, "name")},
			Revision:  placement.Revision{Commit: words.Draw(t, "commit"), Hash: words.Draw(t, "hash")},
			Abandon:   rapid.Bool().Draw(t, "abandon"), items: items{},
		}
		for range rapid.IntRange(0, 20).Draw(t, "items") {
			it := item{
				Group: words.Draw(t, "g"), Version: words.Draw(t, "v"), Kind: words.Draw(t, "k"), Namespace: words.Draw(t, "ns"), Name: words.Draw(t, "n"),
				Hash: words.Draw(t, "h"), Managed: words.Draw(t, "m"), UID: types.UID(words.Draw(t, "u")), Commit: words.Draw(t, "c"),
			}
			inv.items.put(it)
		}
		raw, digest, err := inv.pack()
		if err != nil {
			t.Fatal(err)
		}
		again, digestAgain, err := inv.pack()
		if err != nil || !bytes.Equal(raw, again) || digest != digestAgain {
			t.Fatalf("packed twice: %d and %d bytes, %s and %s, %v", len(raw), len(again), digest, digestAgain, err)
		}
		back, err := unpack(raw)
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
			name := inventoryName(fleet, p)
			if other, taken := names[name]; taken {
				t.Errorf("%s is the name for %s and for %s %s", name, other, fleet, p)
			}
			names[name] = fleet + " " + p.String()
			if len(partName(name, 999)) > 253 || strings.ToLower(name) != name || strings.ContainsAny(name, "/_ ") {
				t.Errorf("%s is no name for a ConfigMap", name)
			}
		}
	}
	if got := inventoryName("prod", web); !strings.HasPrefix(got, "inventory-crp-web-") {
		t.Errorf("%s does not tell the placement", got)
	}
}

// A saved inventory can be read back, has the necessary number of parts, and saving it again
// sends no request.
func TestInventoryIsSavedOnce(t *testing.T) {
	smallParts(t)
	for parts, inv := range map[int]*inventory{0: held(0), 1: held(50), 2: heavy(2), 3: heavy(3)} {
		parts = max(parts, 1)
		t.Run(fmt.Sprint(len(inv.items.Map)), func(t *testing.T) {
			store := newShelf()
			s := sessionAt(t, store)
			if err := s.save(t.Context(), inv); err != nil {
				t.Fatal(err)
			}
			if got := len(store.maps); got != parts {
				t.Errorf("%d items are in %d parts, want %d", len(inv.items.Map), got, parts)
			}
			for name, raw := range store.maps {
				if len(raw) > partSize*4/3+1<<10 {
					t.Errorf("%s has %d bytes", name, len(raw))
				}
			}
			// the first part has the digest of all, so that it is written last
			if last := store.done[len(store.done)-1]; last != "PATCH "+inventoryName("prod", web) {
				t.Errorf("written last: %s", last)
			}
			writes := len(store.done)
			if err := s.save(t.Context(), inv); err != nil || len(store.done) != writes {
				t.Errorf("saved unchanged: %v, %v", store.done[writes:], err)
			}
			other := sessionAt(t, store)
			if err := other.inventories(t.Context()); err != nil {
				t.Fatal(err)
			}
			if why := same(inv, other.inv[web]); why != "" {
				t.Error(why)
			}
			if err := other.save(t.Context(), other.inv[web]); err != nil || len(store.done) != writes {
				t.Errorf("saved as it was read: %v, %v", store.done[writes:], err)
			}
		})
	}
}

// No part remains of an inventory that becomes smaller or is dropped.
func TestInventoryShrinks(t *testing.T) {
	smallParts(t)
	store := newShelf()
	s := sessionAt(t, store)
	inv := heavy(3)
	if err := s.save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Collect(inv.items.IDs())[2:] {
		inv.items.Drop(id)
	}
	if err := s.save(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	if want := []string{inventoryName("prod", web)}; !slices.Equal(store.names(), want) {
		t.Errorf("left: %v, want %v", store.names(), want)
	}
	other := sessionAt(t, store)
	if err := other.inventories(t.Context()); err != nil || same(inv, other.inv[web]) != "" {
		t.Errorf("%v, %s", err, same(inv, other.inv[web]))
	}
	if err := other.dropInventory(t.Context(), other.inv[web]); err != nil || len(store.maps) > 0 {
		t.Errorf("after dropping: %v, %v", store.names(), err)
	}
	if len(other.parts) > 0 {
		t.Errorf("parts of a dropped inventory are watched: %v", other.parts)
	}
}

// A write that is interrupted at any point leaves the old inventory, the new one, or one that
// is not used, but never a mixture. The next write repairs it.
func TestInventoryTornWhileWriting(t *testing.T) {
	smallParts(t)
	small, large := held(5), heavy(3)
	tests := map[string]struct {
		first, second *inventory
		changes       int // number of changes of the second write
	}{
		"growing":                 {small, large, 3},
		"shrinking":               {large, small, 3},
		"growing more":            {large, heavy(5), 5},
		"getting smaller":         {heavy(5), large, 5},
		"another one of the size": {large, weighing(17, 1000), 3},
	}
	for name, test := range tests {
		store := newShelf()
		test.first.written = ""
		if err := sessionAt(t, store).save(t.Context(), test.first); err != nil {
			t.Fatal(err)
		}
		for intact := range test.changes {
			t.Run(fmt.Sprintf("%s, after %d changes", name, intact), func(t *testing.T) {
				store := store.clone()
				s := sessionAt(t, store)
				test.second.written, test.second.parts = "", test.first.parts
				store.intact = intact
				if err := s.save(t.Context(), test.second); err == nil || test.second.written != "" {
					t.Fatalf("%v, and it is thought to be written as %q", err, test.second.written)
				}
				store.intact = -1
				other := sessionAt(t, store)
				if err := other.inventories(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := other.inv[web]; got != nil && same(got, test.first) != "" && same(got, test.second) != "" {
					t.Errorf("a mixture is believed: %s; %s", same(got, test.first), same(got, test.second))
				}
				if err := s.save(t.Context(), test.second); err != nil {
					t.Fatal(err)
				}
				last := sessionAt(t, store)
				if err := last.inventories(t.Context()); err != nil || same(last.inv[web], test.second) != "" {
					t.Errorf("written again: %v, %s", err, same(last.inv[web], test.second))
				}
				if want := max(1, test.second.parts); len(store.maps) != want {
					t.Errorf("written again: there are %v, want %d parts", store.names(), want)
				}
			})
		}
	}
}

// A damaged inventory is not used, and does not prevent reading the others.
func TestDamagedInventoryIsNotBelieved(t *testing.T) {
	name := inventoryName("prod", web)
	edit := func(do func(o map[string]any)) func(*shelf, string) {
		return func(s *shelf, part string) {
			var o map[string]any
			if err := json.Unmarshal(s.maps[part], &o); err != nil {
				panic(err)
			}
			do(o)
			s.maps[part], _ = json.Marshal(o)
		}
	}
	note := func(o map[string]any, key, value string) {
		o["metadata"].(map[string]any)["annotations"].(map[string]any)[key] = value
	}
	tests := map[string]struct {
		part   int
		damage func(s *shelf, part string)
	}{
		"a part is gone":         {1, func(s *shelf, part string) { delete(s.maps, part) }},
		"the first is gone":      {0, func(s *shelf, part string) { delete(s.maps, part) }},
		"data is gone":           {0, edit(func(o map[string]any) { delete(o, "binaryData") })},
		"data is not base64":     {1, edit(func(o map[string]any) { o["binaryData"].(map[string]any)[inventoryKey] = "!" })},
		"data is something else": {1, edit(func(o map[string]any) { o["binaryData"].(map[string]any)[inventoryKey] = "YWJj" })},
		"the digest is another":  {0, edit(func(o map[string]any) { note(o, digestKey, "0123456789abcdef") })},
		"fewer parts":            {0, edit(func(o map[string]any) { note(o, partsKey, "1") })},
		"no parts":               {0, edit(func(o map[string]any) { note(o, partsKey, "0") })},
		"less than none":         {0, edit(func(o map[string]any) { note(o, partsKey, "-1") })},
		"very many parts":        {0, edit(func(o map[string]any) { note(o, partsKey, "999999999999") })},
		"the number is a word":   {0, edit(func(o map[string]any) { note(o, partsKey, "two") })},
	}
	smallParts(t)
	intact, fine := newShelf(), held(3)
	fine.Placement = api.PlacementKey{Name: "fine"}
	for _, inv := range []*inventory{heavy(2), fine} {
		if err := sessionAt(t, intact).save(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			store := intact.clone()
			test.damage(store, partName(name, test.part))
			other := sessionAt(t, store)
			if err := other.inventories(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := other.inv[web]; got != nil {
				t.Errorf("believed, with %d items", len(got.items.Map))
			}
			if why := same(fine, other.inv[fine.Placement]); why != "" {
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
		if inv, err := unpack(raw[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are an inventory of %d items", n, len(raw), len(inv.items.Map))
		}
	}
	for _, text := range []string{"", "x", "\x1f\x8b", strings.Repeat("\x00", 100)} {
		if _, err := unpack([]byte(text)); err == nil {
			t.Errorf("%q is an inventory", text)
		}
	}
}
