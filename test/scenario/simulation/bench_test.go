package simulation

import (
	"runtime/debug"
	"testing"
)

// A step of a simulated fleet: a commit, an outage, a crash, with all its consequences, and its
// share of the start and the end of a scenario.
func BenchmarkScenarios(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	with, steps := NewLoaders(), 0
	scenarios := testing.InternalTest{Name: "scenarios", F: func(t *testing.T) {
		for i := range b.N {
			steps += NewScenario(uint64(i+1)).Run(t, with, false).Steps
		}
	}}
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{scenarios}) {
		b.Fatal("an invariant is violated")
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}
