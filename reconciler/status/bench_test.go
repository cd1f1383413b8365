package status_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// settled returns a fleet in which everything is applied, with placements on a hundred clusters
// each.
func settled(b testing.TB, clusters, placements int) *scene {
	b.Helper()
	return settledOn(b, clusters, placements, fmt.Sprintf("pick %d", min(100, clusters)))
}

// settledOn is like settled with placements of some policy.
func settledOn(b testing.TB, clusters, placements int, policy string) *scene {
	b.Helper()
	s := newScene(b)
	s.in.ShortDecisions = true
	var text strings.Builder
	text.WriteString("clusters")
	for i := range clusters {
		fmt.Fprintf(&text, " c%04d", i)
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: fmt.Sprintf("c%04d", i), At: s.now, Healthy: true, Properties: map[string]string{
			"kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/total-cpu": "12", "resources.kubernetes-fleet.io/available-cpu": "7500m",
		}})
	}
	text.WriteString("\n")
	for i := range placements {
		fmt.Fprintf(&text, "namespace p%04d\nplace p%04d %s\n", i, i, policy)
	}
	s.commit("v1", world.Files(b, text.String()))
	for range 4 {
		s.resolve()
		s.remember(s.build())
		s.now = s.now.Add(time.Second)
		for cluster, works := range s.last.Works {
			for _, w := range works {
				if seen := s.in.Ledger.Placement(w.Placement).Entry(cluster).Seen; seen == nil || seen.Revision != w.Revision {
					s.says(cluster, w, 0)
				}
			}
		}
	}
	s.resolve()
	s.remember(s.build())
	return s
}

func (s *scene) resolve() {
	s.in.Now = s.now
	s.last = plan.Resolve(s.in)
	s.last.UpdateLedger(s.in.Ledger)
}

func (s *scene) build() *status.Report {
	return s.memo.Build(status.Input{Plan: s.last, InForce: s.in.InForce, Ledger: s.in.Ledger, Now: s.now})
}

func (s *scene) remember(r *status.Report) {
	r.UpdateLedger(s.in.Ledger)
}

func (s *scene) says(cluster string, w *work.Work, untrackable int) {
	s.in.Ledger.Fold(protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Untrackable: untrackable}})
}

// BenchmarkBuildAll builds the report for a thousand placements on a thousand clusters.
func BenchmarkBuildAll(b *testing.B) {
	s := settled(b, 1000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		s.memo = status.NewMemo()
		s.build()
	}
}

// BenchmarkTurnOneReport plans and builds the report after one member has reported something
// new about one placement.
func BenchmarkTurnOneReport(b *testing.B) {
	for _, n := range []int{250, 1000} {
		b.Run(fmt.Sprintf("clusters=%d/placements=%d", n, n), func(b *testing.B) {
			s := settled(b, n, n)
			key := api.PlacementKey{Name: "p0007"}
			cluster := s.in.Ledger.Placement(key).Entries()[0].Binding.Cluster
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.now = s.now.Add(time.Millisecond)
				s.says(cluster, s.last.Works[cluster][0], i%2)
				s.resolve()
				s.remember(s.build())
			}
		})
	}
}

// BenchmarkTurnFlood plans and builds the report after one member has reported something new about each of 20 placements
// on all of 1,000 clusters. It also measures what the ledger, the plan and the report keep for a placement on a cluster.
func BenchmarkTurnFlood(b *testing.B) {
	const clusters, placements = 1000, 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := settledOn(b, clusters, placements, "")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.now = s.now.Add(time.Millisecond)
		cluster := fmt.Sprintf("c%04d", i%clusters)
		for _, w := range s.last.Works[cluster] {
			s.says(cluster, w, i%2)
		}
		s.resolve()
		s.remember(s.build())
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/clusters/placements, "kept-B/entry")
}

// BenchmarkBuildOneChange only builds the report after one member has reported something new
// about one placement. The other 999 placements must cost next to nothing.
func BenchmarkBuildOneChange(b *testing.B) {
	s := settled(b, 100, 1000)
	key := api.PlacementKey{Name: "p0007"}
	cluster := s.in.Ledger.Placement(key).Entries()[0].Binding.Cluster
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		s.now = s.now.Add(time.Millisecond)
		s.says(cluster, s.last.Works[cluster][7], i%2)
		s.resolve()
		b.StartTimer()
		s.remember(s.build())
	}
}
