package simulation

import "testing"

// A step of a simulated fleet: a commit, an outage, a crash, with all its consequences, and its
// share of the start and the end of a life.
func BenchmarkLives(b *testing.B) {
	with, steps := NewLoaders(), 0
	lives := testing.InternalTest{Name: "lives", F: func(t *testing.T) {
		for i := range b.N {
			steps += NewLife(uint64(i+1)).Lead(t, with, false).Steps
		}
	}}
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{lives}) {
		b.Fatal("a law is broken")
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}
