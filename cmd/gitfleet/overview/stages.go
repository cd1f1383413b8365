package overview

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Stage is the progress of a placement on one cluster.
type Stage struct {
	Cluster string
	State   State
	Why     string
	// NotDeleted are objects whose deletion the cluster refuses, and objects that were deleted
	// but still exist.
	NotDeleted []string
}

// StagesOf returns the progress of a placement on each of its clusters.
func StagesOf(r *status.Report, placement string) []Stage {
	statuses, members := PlacementStatuses(r), MemberStatesOf(r)
	var out []Stage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := PerCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := Stage{Cluster: c.Cluster, State: StateOf(c, on[c.Cluster], members)}
			switch s.State {
			case waiting:
				s.Why = c.Held
			case failed:
				s.Why = FailureOf(c, on[c.Cluster])
			case Unreachable, Forbidden:
				s.Why = reasonOfAbsence(r, c.Cluster)
			}
			s.NotDeleted = append(s.NotDeleted, c.DeletionErrors...)
			for _, text := range c.Lingering {
				s.NotDeleted = append(s.NotDeleted, text+": deleted, and not gone yet")
			}
			out = append(out, s)
		}
	}
	return out
}

// PerCluster returns the parts of a status by cluster.
func PerCluster(s *api.PlacementStatus) map[string]*api.PerClusterPlacementStatus {
	out := map[string]*api.PerClusterPlacementStatus{}
	if s != nil {
		for i := range s.PlacementStatuses {
			out[s.PlacementStatuses[i].ClusterName] = &s.PlacementStatuses[i]
		}
	}
	return out
}

// reasonOfAbsence returns why a member is not ready; empty if it is ready, or if there is no
// member of that name.
func reasonOfAbsence(r *status.Report, cluster string) string {
	for _, c := range r.Clusters {
		if c.Name == cluster {
			return Absence(c).Reason
		}
	}
	return ""
}
