package inventory

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// BenchmarkJoin measures what the inventories of a cluster cost that joins a fleet of a hundred placements, and how much memory they
// keep afterwards.
func BenchmarkJoin(b *testing.B) {
	const placements = 100
	srv := httptest.NewServer(apiserver.NewConfigMaps())
	defer srv.Close()
	live := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	b.ReportAllocs()
	var joined []List
	var stores []*Store
	before := live()
	for b.Loop() {
		st, all, additions := storeOn(b, here, srv.URL), List{}, []*Inventory{}
		for n := range placements {
			p := api.PlacementKey{Name: fmt.Sprint("placement-", n)}
			inv, added := New(p, placement.Revision{Commit: "c1", Hash: p.Name}), New(p, placement.Revision{Commit: "c1", Hash: p.Name})
			for _, kind := range []string{"ConfigMap", "Service"} {
				it := Item{Version: "v1", Kind: kind, Namespace: "app", Name: p.Name}
				added.Items.Put(it)
				it.Hash, it.Managed, it.UID, it.Commit = "hash of "+p.Name, "managed "+p.Name, "0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "c1"
				inv.Items.Put(it)
			}
			all.Put(inv)
			additions = append(additions, added)
		}
		if !announce(b, st, additions...) {
			b.Fatal("not announced")
		}
		if rest, err := SaveTogether(b.Context(), st, all); err != nil || len(rest) > 0 {
			b.Fatal(rest, err)
		}
		st.conn.Close()
		joined, stores = append(joined, all), append(stores, st)
	}
	kept := live() - before
	b.ReportMetric(kept/float64(b.N*placements), "kept-B/inventory")
	runtime.KeepAlive(joined)
	runtime.KeepAlive(stores)
}
