package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// filled returns a ledger of placements with a hundred clusters each, and a store that has it.
func filled(b *testing.B, placements int) (*Ledger, Store) {
	b.Helper()
	store := open(b, b.TempDir())
	l := New()
	for p := range placements {
		key := api.PlacementKey{Name: fmt.Sprintf("p%04d", p)}
		l.SetPlacement(key, Placement{})
		for c := range 100 {
			l.Bind(key, placement.Binding{Cluster: fmt.Sprintf("c%04d", c), Assigned: placement.Revision{Commit: "c1", Hash: "h1"}})
		}
	}
	for saved := false; !saved; saved = !l.Unsaved() { // each save takes a part of so many new entries
		if err := store.Save(l); err != nil {
			b.Fatal(err)
		}
	}
	return l, store
}

// BenchmarkSave saves one report of one member about one placement. The cost must not depend on
// the size of the ledger.
func BenchmarkSave(b *testing.B) {
	for _, placements := range []int{10, 1000} {
		for _, changed := range []int{1, 100} {
			b.Run(fmt.Sprintf("entries=%d/changed=%d", placements*100, changed), func(b *testing.B) {
				l, store := filled(b, placements)
				defer store.Close()
				at := time.Unix(1_700_000_000, 0)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					at = at.Add(time.Millisecond)
					for c := range changed {
						l.Fold(protocol.WorkSeen{Cluster: fmt.Sprintf("c%04d", c), Placement: api.PlacementKey{Name: "p0007"}, At: at, WorkState: protocol.WorkState{Done: true, Untrackable: i % 2}})
					}
					if err := store.Save(l); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
