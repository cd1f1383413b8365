package reconciler

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An eviction is ordered with a reason, for a cluster; of those that a budget has blocked only the last is kept.
func TestEvict(t *testing.T) {
	c := newOrdered(t)
	for _, step := range []struct {
		name  string
		do    func(*orderRun, Order) (string, error)
		order Order
		want  string
	}{
		{"no cluster", (*orderRun).evict, Order{Subject: "crp/web", Reason: "INC-1"}, "error: a ClusterResourcePlacement is evicted from a cluster: name crp/NAME and the cluster; other placements leave a cluster when their policy does not select it"},
		{"no reason", (*orderRun).evict, Order{Subject: "crp/web", Cluster: "east"}, "error: --reason is required"},
		{"a bad name", (*orderRun).evict, Order{Subject: "crp/web", Cluster: "east", Reason: "INC-1", Name: "a b"}, "error: \"a b\" cannot be the name of an eviction"},
		{"an unknown placement", (*orderRun).evict, Order{Subject: "crp/shop", Cluster: "east", Reason: "INC-1"}, "error: there is no placement crp/shop; there are crp/web"},
		{"it is ordered", (*orderRun).evict, Order{Subject: "crp/web", Cluster: "east", Reason: "INC-1", Name: "one", By: "ada"}, "the eviction one of crp/web from east is ordered"},
		{"the same name", (*orderRun).evict, Order{Subject: "crp/web", Cluster: "east", Reason: "INC-1", Name: "one", By: "ada"}, "error: there is an eviction one already"},
		{"not cordoned", (*orderRun).uncordon, Order{Subject: "cluster/east"}, "error: cluster/east is not cordoned, and nothing else is either"},
		{"a placement", (*orderRun).cordon, Order{Subject: "crp/web", Reason: "INC-1"}, "error: crp/web is no cluster: name one"},
		{"a cluster", (*orderRun).cordon, Order{Subject: "cluster/east", Reason: "kernel", By: "ada"}, "cluster/east is cordoned by ada: kernel"},
		{"it is no suspension", (*orderRun).resume, Order{Subject: "cluster/east"}, "error: cluster/east is not suspended, and nothing else is either"},
		{"uncordoned", (*orderRun).uncordon, Order{Subject: "cluster/east"}, "cluster/east is not cordoned any more; it was cordoned by ada: kernel"},
	} {
		if got := ordered(step.do(c.orders(), step.order)); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.name, got, step.want)
		}
	}
	if left := c.ledger.Placement(api.PlacementKey{Name: "web"}).Evictions; len(left) != 1 || left[0].By != "ada" || !left[0].Pending() {
		t.Errorf("recorded: %+v", left)
	}
}
