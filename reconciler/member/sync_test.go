package member

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/probe"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// After a change between applying and reporting differences, the work is not done yet although
// the revision is the same.
func TestChangedStrategyTypeIsNotDone(t *testing.T) {
	web, m := api.PlacementKey{Name: "web"}, oneManifest()
	s := sessionAt(t, apiserver.NewConfigMaps())
	for _, typ := range []api.ApplyStrategyType{api.ReportDiff, api.ServerSideApply, api.ReportDiff} {
		s.want([]work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if s.done[web] {
			t.Errorf("%s counts as done before it was tried", typ)
		}
		s.done[web] = true
		s.want([]work.Work{{Placement: web, Strategy: api.ApplyStrategy{Type: typ}, Manifests: []*work.Manifest{m}}})
		if !s.done[web] {
			t.Errorf("%s does not count as done after it was told again", typ)
		}
	}
}

// Failures are retried once a cluster answers again.
func TestReturnedClusterIsRetriedAtOnce(t *testing.T) {
	for _, returned := range []bool{false, true} {
		s := sessionAt(t, apiserver.NewConfigMaps())
		s.trouble = map[api.ID]*trouble{cm("x"): {next: time.Now().Add(time.Hour)}}
		if err := s.probed(t.Context(), probe.Result{Returned: returned}); err != nil {
			t.Fatal(err)
		}
		if again := s.trouble[cm("x")].next.IsZero(); again != returned {
			t.Errorf("returned: %t, tried again: %t", returned, again)
		}
	}
}
