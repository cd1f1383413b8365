package reconciler

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// A rollout that is stopped is counted once, however many updates fail, and again when
// it is stopped again.
func TestStoppedRolloutsAreCounted(t *testing.T) {
	m, l, key := NewMetrics(), ledger.New(), api.PlacementKey{Name: "web"}
	turn := func(clusters ...string) {
		record := ledger.Placement{}
		for _, c := range clusters {
			record.Stops = append(record.Stops, placement.Stop{Cluster: c})
		}
		p := &plan.Plan{Placements: sharedlist.Of(&plan.Placement{Key: key, Record: record, RecordChanged: true})}
		m.count(slices.Concat(occurrence.OfPlan(p, l, hub.Commit{})...))
		p.UpdateLedger(l)
	}
	for _, step := range []struct {
		stops []string
		want  float64
	}{{nil, 0}, {[]string{"east"}, 1}, {[]string{"east", "west"}, 1}, {nil, 1}, {[]string{"west"}, 2}} {
		if turn(step.stops...); testutil.ToFloat64(m.RolloutsStopped) != step.want {
			t.Errorf("with stops %v %v are counted, want %v", step.stops, testutil.ToFloat64(m.RolloutsStopped), step.want)
		}
	}
}
