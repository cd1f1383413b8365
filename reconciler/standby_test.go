package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A standby that cannot report because it cannot read the ledger keeps only the commits that it
// needs.
func TestStandbyKeepsFewCommits(t *testing.T) {
	for name, known := range map[string]*ledger.Ledger{"without a ledger": nil, "with a ledger": ledger.New()} {
		t.Run(name, func(t *testing.T) {
			r := &follower{Reconciler: &Reconciler{past: newPastCommits(), ledger: known}}
			want := []string{"c9"}
			if known != nil {
				known.SetInForce("c3")
				want = []string{"c3", "c5", "c9"}
			}
			for i := range 10 {
				commit := hub.Commit{Hash: fmt.Sprintf("c%d", i)}
				snapshot := &hub.Snapshot{Commit: commit}
				r.newestLoaded(loaded{commit: commit, snapshot: snapshot})
				if known != nil && i == 5 {
					r.inForce = snapshot
				}
			}
			if got := slices.Sorted(maps.Keys(r.past.snapshots)); !slices.Equal(got, want) {
				t.Errorf("keeps %v, want %v", got, want)
			}
		})
	}
}
