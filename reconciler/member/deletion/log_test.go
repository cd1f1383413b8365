package deletion

import (
	"fmt"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Deletions are grouped by cause, and only the newest groups and the first objects of each are
// kept.
func TestDeletionsInAReportAreLimited(t *testing.T) {
	web := api.PlacementKey{Name: "web"}
	log := Log{}
	for i := range protocol.MostDeletions + 3 {
		for n := range protocol.MostDeletedObjects + 2 {
			log.Add(web, api.ID{Kind: "ConfigMap", Name: fmt.Sprint(n)}, work.Cause{Commit: fmt.Sprint("c", i)})
		}
	}
	got := log.Take(web)
	if len(got) != protocol.MostDeletions || got[0].Commit != "c3" {
		t.Fatalf("%d groups, the first of %s", len(got), got[0].Commit)
	}
	for _, group := range got {
		if group.Total != protocol.MostDeletedObjects+2 || len(group.Objects) != protocol.MostDeletedObjects || group.Objects[0].Name != "0" {
			t.Errorf("%s: %d deletions, of which %d are listed", group.Commit, group.Total, len(group.Objects))
		}
	}
	if again := log.Take(web); again != nil {
		t.Errorf("reported again: %+v", again)
	}
}
