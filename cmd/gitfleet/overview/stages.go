package overview

import (
	"slices"

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
	statuses, members := status.PlacementStatuses(r), status.MemberStatesOf(r)
	var out []Stage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := status.PerCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := Stage{Cluster: c.Cluster, State: status.StateOf(c, on[c.Cluster], members)}
			switch s.State {
			case status.StateWaiting:
				s.Why = c.Waits
			case status.StateFailed:
				s.Why = status.FailureOf(c, on[c.Cluster])
			case status.StateUnreachable, status.StateForbidden:
				if at := slices.IndexFunc(r.Clusters, func(m *api.MemberCluster) bool { return m.Name == c.Cluster }); at >= 0 {
					s.Why = NewMember(r.Clusters[at]).Reason
				}
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
