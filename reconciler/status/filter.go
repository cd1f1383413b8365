package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Only returns the part of the report about one placement (crp/NAME or
// rp/NAMESPACE/NAME): itself, its clusters, drifts and events, and the suspensions that affect
// it. The error is an *UnknownError if it does not exist.
func (r *Report) Only(name string) (*Report, error) {
	i := slices.IndexFunc(r.Details, func(d *Detail) bool { return d.Placement == name })
	if i < 0 {
		return nil, unknown("placement", name, r.Details, func(d *Detail) string { return d.Placement })
	}
	on := map[string]bool{}
	for _, c := range r.Details[i].Clusters {
		on[c.Cluster] = true
	}
	return &Report{
		At: r.At, Source: r.Source, Details: r.Details[i : i+1 : i+1],
		Clusters:           filter(r.Clusters, func(c **api.MemberCluster) bool { return on[(*c).Name] }),
		Placements:         filter(r.Placements, func(p **api.ClusterResourcePlacement) bool { return nameOf(*p) == name }),
		ResourcePlacements: filter(r.ResourcePlacements, func(p **api.ResourcePlacement) bool { return nameOf(*p) == name }),
		UpdateRuns: filter(r.UpdateRuns, func(u **api.ClusterStagedUpdateRun) bool {
			return api.PlacementKey{Namespace: (*u).Namespace, Name: (*u).Spec.PlacementName}.String() == name
		}),
		Drifts:    filter(r.Drifts, func(d *Drift) bool { return d.Placement == name }),
		Events:    filter(r.Events, func(e *Event) bool { return e.About() == name }),
		Evictions: filter(r.Evictions, func(e **api.ClusterResourcePlacementEviction) bool { return "crp/"+(*e).Spec.PlacementName == name }),
		Suspensions: filter(r.Suspensions, func(s *Suspension) bool {
			return (s.Placement == "" || s.Placement == name) && (s.Cluster == "" || on[s.Cluster])
		}),
	}, nil
}

// On returns the part of the report about one member cluster: itself, the placements
// that it holds (without their selections and other clusters), and drifts, events and
// suspensions. The error is an *UnknownError if it does not exist.
func (r *Report) On(cluster string) (*Report, error) {
	i := slices.IndexFunc(r.Clusters, func(c *api.MemberCluster) bool { return c.Name == cluster })
	if i < 0 {
		return nil, unknown("cluster", cluster, r.Clusters, func(c *api.MemberCluster) string { return c.Name })
	}
	held := map[string]bool{}
	out := &Report{
		At: r.At, Source: r.Source, Clusters: r.Clusters[i : i+1 : i+1],
		Evictions: filter(r.Evictions, func(e **api.ClusterResourcePlacementEviction) bool { return (*e).Spec.ClusterName == cluster }),
		Drifts:    filter(r.Drifts, func(d *Drift) bool { return d.Cluster == cluster }),
		Events:    filter(r.Events, func(e *Event) bool { return e.Cluster == cluster || e.About() == "cluster/"+cluster }),
	}
	for _, d := range r.Details {
		if j := slices.IndexFunc(d.Clusters, func(c ClusterDetail) bool { return c.Cluster == cluster }); j >= 0 {
			held[d.Placement] = true
			of := *d
			of.Clusters = d.Clusters[j : j+1 : j+1]
			out.Details = append(out.Details, &of)
		}
	}
	for _, p := range r.Placements {
		if held[nameOf(p)] {
			of := *p
			of.Status = statusOn(cluster, of.Status)
			out.Placements = append(out.Placements, &of)
		}
	}
	for _, p := range r.ResourcePlacements {
		if held[nameOf(p)] {
			of := *p
			of.Status = statusOn(cluster, of.Status)
			out.ResourcePlacements = append(out.ResourcePlacements, &of)
		}
	}
	out.Suspensions = filter(r.Suspensions, func(s *Suspension) bool {
		return (s.Cluster == "" || s.Cluster == cluster) && (s.Placement == "" || held[s.Placement])
	})
	return out, nil
}

// nameOf is the name of a placement of either kind: crp/NAME or rp/NAMESPACE/NAME.
func nameOf(p metav1.Object) string {
	return api.PlacementKey{Namespace: p.GetNamespace(), Name: p.GetName()}.String()
}

// filter returns the items for which are is true, in order; nil if there are none.
func filter[T any](all []T, are func(*T) bool) (out []T) {
	for i := range all {
		if are(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// statusOn returns the part of a status about one cluster.
func statusOn(cluster string, s api.PlacementStatus) api.PlacementStatus {
	s.SelectedResources = nil
	s.PlacementStatuses = filter(s.PlacementStatuses, func(c *api.PerClusterPlacementStatus) bool { return c.ClusterName == cluster })
	return s
}
