package rollout

import (
	"fmt"
	"testing"
)

// BenchmarkNext plans the rollout of a placement on a thousand clusters: without changes, in
// the middle of an update, and stopped.
func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct{ name, word string }{{"settled", "bR="}, {"rolling", "bR"}, {"waiting", "bC"}} {
		b.Run(bench.name, func(b *testing.B) {
			in := input(1000, "", "25%/25% 60")
			for i := range 1000 {
				in.Targets = append(in.Targets, binding(fmt.Sprintf("cluster-%04d", i), bench.word))
			}
			b.ReportAllocs()
			for b.Loop() {
				Next(in)
			}
		})
	}
}
