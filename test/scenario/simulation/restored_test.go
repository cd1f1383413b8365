package simulation

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Restored clusters end as rendered. If a member does not read its inventories again after a restore, they do not: what
// a placement had there that Git has deleted since comes back, and stays.
func TestRestoredClustersEndAsRendered(t *testing.T) {
	with, restores, noticed := NewLoaders(), 0, false
	n := uint64(40)
	if testing.Short() {
		n = 20
	}
	for seed := uint64(7); seed < n*restoresShare; seed += restoresShare {
		out := NewScenario(seed).Run(t, with, true)
		if out.Violation != nil {
			t.Fatalf("seed %d: %s\n%s", seed, out.Violation, out.Log)
		}
		restores += strings.Count(out.Log, "restored\n") + strings.Count(out.Log, "are deleted\n")
	}
	for seed := uint64(7); seed < 100*restoresShare && !noticed; seed += restoresShare {
		sc := NewScenario(seed)
		sc.Mutant = Mutant{Notices: func(o *protocol.ClusterSeen) {
			if !o.Restored.At.IsZero() {
				o.Inventories = nil
			}
		}}
		v := sc.Run(t, with, false).Violation
		noticed = v != nil && v.Invariant == invariantConverges
	}
	if restores == 0 || !noticed {
		t.Errorf("%d restores; that inventories are not read again was noticed: %t", restores, noticed)
	}
}
