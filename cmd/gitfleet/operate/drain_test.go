package operate

import (
	"errors"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// What cannot be evicted is not, and is named with what to do; the exit code says that it is left.
func TestDrainNamesWhatStays(t *testing.T) {
	fixed := &api.PlacementPolicy{PlacementType: api.PickFixed, ClusterNames: []string{"paris"}}
	tolerant := &api.PlacementPolicy{PlacementType: api.PickAll, Tolerations: []api.Toleration{{Key: "cordon-key", Operator: api.TolerationExists}}}
	r := &status.Report{Clusters: []*api.MemberCluster{reports.MemberCluster("paris", true)}}
	for name, policy := range map[string]*api.PlacementPolicy{"dns": fixed, "logs": tolerant} {
		p := &api.ClusterResourcePlacement{Spec: api.PlacementSpec{Policy: policy}}
		p.Name = name
		r.Placements = append(r.Placements, p)
	}
	for _, name := range []string{"crp/dns", "crp/logs", "rp/web/db"} {
		r.Details = append(r.Details, &status.Detail{Placement: name, Clusters: []status.ClusterDetail{{Cluster: "paris"}}})
	}
	orders, out, err := ask(t, NewDrain(), r, server.ActionResult{Message: "cordoned"}, "paris", "--reason", "INC-1")
	const want = "cordoned\n" +
		"crp/dns: stays: its policy is PickFixed; remove the cluster from clusterNames in Git\n" +
		"crp/logs: stays: it tolerates the taint of drained clusters, so that it would come back; let its policy not select the cluster, in Git\n" +
		"rp/web/db: stays: it is no ClusterResourcePlacement; let its policy not select the cluster, in Git\n"
	if !errors.Is(err, exit.Attention) || out != want || len(orders) != 1 {
		t.Errorf("%v, %d orders\n%s\nwant\n%s", err, len(orders), out, want)
	}
	r.Details = nil
	if _, out, err := ask(t, NewDrain(), r, server.ActionResult{Message: "cordoned"}, "paris", "--reason", "INC-1"); err != nil || out != "cordoned\ncluster/paris is drained\n" {
		t.Errorf("an empty cluster: %v\n%s", err, out)
	}
}
