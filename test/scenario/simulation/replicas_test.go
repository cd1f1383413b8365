package simulation

import (
	"strings"
	"testing"
)

// In scenarios with replicas there are leaders that were stopped, some of them during a save, and
// saves that failed but were made.
func TestReplicasTakeOverFromEachOther(t *testing.T) {
	with, n := NewLoaders(), map[string]int{
		"the former leader wakes up": 0, "the former leader saves nothing": 0, "a save that failed was made": 0, "the leader loses the Lease": 0,
	}
	for seed := uint64(3); seed < 40*replicaShare; seed += replicaShare {
		out := NewScenario(seed).Run(t, with, true)
		if out.Violation != nil {
			t.Fatalf("seed %d: %s\n%s", seed, out.Violation, out.Log)
		}
		for what := range n {
			n[what] += strings.Count(out.Log, what)
		}
	}
	for what, times := range n {
		if times == 0 {
			t.Errorf("in no scenario %s", what)
		}
	}
	t.Log(n)
}
