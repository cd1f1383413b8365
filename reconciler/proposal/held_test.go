package proposal

import (
	"testing"
	"time"
)

// The oldest change comes first. Each names its modes, placements and people once, and the clusters
// that get the object.
func TestTheListOfHeldChanges(t *testing.T) {
	noon := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	item := func(n int, age time.Duration, clusters ...string) heldItem {
		c := heldChange(n, clusters...)
		for _, d := range c.drifts {
			d.Since, d.Rule = noon.Add(-age), "propose"
		}
		return heldItem{change: c, state: Waiting, message: "waits"}
	}
	h := newHeldChanges(noon, nil)
	first, other := item(8, time.Hour, "east", "west"), item(7, time.Minute, "east")
	first.drifts[1].Rule, first.drifts[1].Placement, first.drifts[1].Since = "report", "crp/other", noon.Add(-2*time.Hour)
	first.holders, first.others = 3, []string{"north"}
	h.items = []heldItem{item(9, time.Minute, "east"), other, first}
	list := h.list()
	if list.APIVersion != HeldVersion || !list.At.Equal(noon) || len(list.Items) != 3 {
		t.Fatalf("the list is %+v", list)
	}
	for i, want := range []string{heldChange(8).hash, heldChange(7).hash, heldChange(9).hash} {
		if list.Items[i].Name != want {
			t.Errorf("item %d is %s, want %s", i, list.Items[i].Name, want)
		}
	}
	found := list.Items[0]
	if !found.FirstSeen.Equal(noon.Add(-2*time.Hour)) || found.Holders != 3 || len(found.OtherClusters) != 1 || found.Rules[0] != "propose" || found.Rules[1] != "report" || found.Placements[0] != "crp/other" || len(found.Clusters) != 2 {
		t.Errorf("the oldest is %+v", found)
	}
}
