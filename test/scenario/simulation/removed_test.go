package simulation

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// In scenarios with removals, others change and apply what Git removes, and deletions wait for each other.
func TestRemovalsHappen(t *testing.T) {
	with, log := NewLoaders(), ""
	n := uint64(30)
	if testing.Short() {
		n = 10
	}
	for seed := uint64(11); seed < n*removalsShare; seed += removalsShare {
		out := NewScenario(seed).Run(t, with, true)
		if out.Violation != nil {
			t.Fatalf("seed %d: %s\n%s", seed, out.Violation, out.Log)
		}
		log += out.Log
	}
	for _, what := range []string{"somebody edits ", "flux applies ", "what Git has removed is still there", "to be gone before it deletes"} {
		if !strings.Contains(log, what) {
			t.Errorf("in %d scenarios there is no %q", n, what)
		}
	}
}

// What stays of what Git has removed has to be in the report.
func TestRemovedPartsThatAreNotNamedViolateTheInvariant(t *testing.T) {
	with := NewLoaders()
	for seed := uint64(11); seed < 100*removalsShare; seed += removalsShare {
		sc := NewScenario(seed)
		sc.Mutant = Mutant{Publishes: func(r *status.Report) {
			for _, p := range r.Placements {
				for i := range p.Status.PlacementStatuses {
					p.Status.PlacementStatuses[i].DriftedPlacements = nil
				}
			}
		}}
		if v := sc.Run(t, with, false).Violation; v != nil && v.Invariant == invariantRemoved {
			return
		}
	}
	t.Error("none of 100 scenarios detects it")
}
