package lookup

import "github.com/gitfleet/gitfleet/reconciler/status"

// InReport returns a *status.UnknownError if there is no such placement or
// cluster.
func InReport(r *status.Report, placement, cluster string) error {
	var clusters []string
	for _, c := range r.Clusters {
		clusters = append(clusters, c.Name)
	}
	if err := Name("placement", placement, Placements(r)); err != nil {
		return err
	}
	return Name("cluster", cluster, clusters)
}

// Placements returns the names of the placements in a report.
func Placements(r *status.Report) []string {
	var names []string
	for _, d := range r.Details {
		names = append(names, d.Placement)
	}
	return names
}
