package inventory

import (
	"maps"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// An inventory is taken out of an announcement or a bundle also if the others there have become too large for one ConfigMap. These
// are then written into ConfigMaps of their own, with all of their objects.
func TestInventoryIsRemovedFromOthersThatHaveGrown(t *testing.T) {
	smallParts(t)
	for name, write := range map[string]func(*testing.T, *Store, []*Inventory){
		"announcement": func(t *testing.T, st *Store, all []*Inventory) {
			if !announce(t, st, all...) {
				t.Fatal("not announced")
			}
		},
		"bundle": func(t *testing.T, st *Store, all []*Inventory) { saveTogether(t, st, all...) },
	} {
		t.Run(name, func(t *testing.T) {
			at := apiserver.NewConfigMaps()
			st, all := storeAt(t, at), several("a", "b", "c")
			write(t, st, all)
			for it := range heavy(2).Items.All() {
				all[0].Items.Put(it)
			}
			if err := st.Delete(t.Context(), all[2]); err != nil {
				t.Fatal(err)
			}
			if left := slices.Sorted(maps.Keys(at.Stored)); slices.Contains(left, announcementID("prod").Name) || slices.Contains(left, bundleID("prod").Name) {
				t.Errorf("left: %q", left)
			}
			got := load(t, storeAt(t, at))
			if len(got) != 2 || same(got.Of(all[0].Placement()), all[0]) != "" || same(got.Of(all[1].Placement()), all[1]) != "" {
				t.Errorf("%d inventories are left: %q, %q", len(got), namesIn(got.Of(api.PlacementKey{Name: "a"})), namesIn(got.Of(api.PlacementKey{Name: "b"})))
			}
		})
	}
}
