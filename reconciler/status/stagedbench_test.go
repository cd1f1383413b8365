package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// BenchmarkTurnStagedRuns plans and builds the report after one member has reported something new about one placement, while a
// staged update run of three stages is under way for each of a hundred placements on a hundred of a thousand clusters.
func BenchmarkTurnStagedRuns(b *testing.B) {
	s := newScene(b)
	s.in.ShortDecisions = true
	var text strings.Builder
	text.WriteString("clusters")
	for i := range 1000 {
		fmt.Fprintf(&text, " c%04d/stage=%s", i, []string{"canary", "region", "all"}[min(i%10, 2)])
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: fmt.Sprintf("c%04d", i), At: s.now, Healthy: true})
	}
	text.WriteString("\nstrategy slow canary/stage=canary/50% region/stage=region/50% all/stage=all/50%\n")
	for i := range 100 {
		fmt.Fprintf(&text, "namespace p%04d\nplace p%04d pick 100 external staged slow\n", i, i)
	}
	s.commit("v1", world.Files(b, text.String()))
	turn := func() {
		s.resolve()
		s.remember(s.build())
		s.now = s.now.Add(time.Second)
	}
	for range 5 { // two turns for the canary, two for the region, and the last stage has begun
		turn()
		for cluster, works := range s.last.Works {
			for _, w := range works {
				if seen := s.in.Ledger.Placement(w.Placement).Entry(cluster).Seen; seen == nil || seen.Revision != w.Revision {
					s.says(cluster, w, 0)
				}
			}
		}
	}
	turn()
	key := api.PlacementKey{Name: "p0007"}
	if run := s.in.Ledger.Placement(key).Runs; len(run) != 1 || !run[0].Active() || run[0].Turn() != 2 {
		b.Fatalf("no run is in its last stage: %+v", run)
	}
	cluster := s.in.Ledger.Placement(key).Entries()[0].Binding.Cluster
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.now = s.now.Add(time.Millisecond)
		for _, w := range s.last.Works[cluster] {
			if w.Placement == key {
				s.says(cluster, w, i%2)
			}
		}
		s.resolve()
		s.remember(s.build())
	}
}
