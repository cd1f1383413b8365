package main

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An overviewStage is the progress of a placement on one cluster.
type overviewStage struct {
	cluster string
	state   state
	why     string
	// notDeleted are objects whose deletion the cluster refuses, and those that were deleted and
	// still exist.
	notDeleted []string
}

// stagesOf returns the progress of a placement on each of its clusters.
func stagesOf(r *status.Report, placement string) []overviewStage {
	statuses, members := placementStatuses(r), statesOf(r)
	var out []overviewStage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := perCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := overviewStage{cluster: c.Cluster, state: stateOf(c, on[c.Cluster], members)}
			switch s.state {
			case waiting:
				s.why = c.Held
			case failed:
				s.why = failureOf(c, on[c.Cluster])
			case unreachable, forbidden:
				s.why = reasonOfAbsence(r, c.Cluster)
			}
			s.notDeleted = append(s.notDeleted, c.DeletionErrors...)
			for _, text := range c.Lingering {
				s.notDeleted = append(s.notDeleted, text+": deleted, and not gone yet")
			}
			out = append(out, s)
		}
	}
	return out
}

// perCluster returns the parts of a status by cluster.
func perCluster(s *api.PlacementStatus) map[string]*api.PerClusterPlacementStatus {
	out := map[string]*api.PerClusterPlacementStatus{}
	if s != nil {
		for i := range s.PlacementStatuses {
			out[s.PlacementStatuses[i].ClusterName] = &s.PlacementStatuses[i]
		}
	}
	return out
}

// reasonOfAbsence returns why a member is not ready; empty if there is none of that name.
func reasonOfAbsence(r *status.Report, cluster string) string {
	for _, c := range r.Clusters {
		if c.Name == cluster {
			return absence(c).Reason
		}
	}
	return ""
}
