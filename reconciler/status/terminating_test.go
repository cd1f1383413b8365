package status_test

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A placement that was removed from the repository is reported with its own spec, as an object
// that is being deleted, until nothing of it is left, also after a restart. While nothing about
// it changes, it is the same object.
func TestDeletedPlacementIsReportedUntilItIsRemoved(t *testing.T) {
	s := newScene(t)
	play := func(steps ...string) {
		t.Helper()
		for _, step := range steps {
			command, data, _ := strings.Cut(step, "\n")
			s.do(strings.Fields(command), data)
		}
	}
	reported := func() *api.ClusterResourcePlacement {
		t.Helper()
		if len(s.report.Placements) != 1 {
			t.Fatalf("%d placements are reported", len(s.report.Placements))
		}
		return s.report.Placements[0]
	}
	const rest = "clusters east west\nnamespace web\n"
	play("commit v1\n"+rest+"place web pick 1", "seen east west", "turn")
	before := reported()
	if before.DeletionTimestamp != nil {
		t.Fatal("it has a deletion timestamp before it is deleted")
	}
	play("commit v2\n"+rest, "turn")
	going := reported()
	check := func() {
		t.Helper()
		p := reported()
		if p.DeletionTimestamp.IsZero() || len(p.Finalizers) != 1 || p.UID != before.UID || p.Generation != before.Generation {
			t.Errorf("its metadata is %+v", p.ObjectMeta)
		}
		if p.Spec.Policy == nil || p.Spec.Policy.PlacementType != api.PickN || *p.Spec.Policy.NumberOfClusters != 1 {
			t.Errorf("its policy is %+v", p.Spec.Policy)
		}
		if c := p.Status.Conditions[0]; c.Reason != api.PlacementDeleted || !strings.Contains(c.Message, "is being removed") {
			t.Errorf("its condition is %+v", c)
		}
	}
	check()
	play("tick 1m", "turn")
	if reported() != going {
		t.Error("another object, although nothing has changed")
	}
	play("restart", "turn")
	check()
	cluster := s.report.Details[0].Clusters[0].Cluster
	play("member "+cluster+" web\nblocked Namespace web something else is in it", "turn")
	if held := reported().Status.Conditions; len(held) != 2 || held[1].Type != api.DeletionsBlocked {
		t.Errorf("the condition DeletionsHeld is missing: %+v", held)
	}
	play("member "+cluster+" web\nremoved", "turn", "turn")
	if len(s.report.Placements) != 0 {
		t.Error("it is reported after all its objects are gone")
	}
}
