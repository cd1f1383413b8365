package offline

import (
	"fmt"
	"io"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// UnknownSelections returns the placements that use properties which members do not declare, or
// which only a live cluster has. Their selections are not known offline.
func UnknownSelections(p *plan.Plan) map[api.PlacementKey]bool {
	open := map[api.PlacementKey]bool{}
	for before := -1; before < len(open); {
		before = len(open)
		for pl := range p.Placements.Values() {
			policy := pl.Spec.Spec.Policy
			looks := func(name string) bool { return open[api.PlacementKey{Namespace: pl.Key.Namespace, Name: name}] }
			if lacksProperty(p.Clusters, placement.ReferencedProperties(policy)) || slices.ContainsFunc(placement.ReferencedPlacements(policy), looks) {
				open[pl.Key] = true
			}
		}
	}
	return open
}

// PrintUnknownSelections lists the placements whose selection is only a guess.
func PrintUnknownSelections(w io.Writer, p *plan.Plan) {
	open := UnknownSelections(p)
	for pl := range p.Placements.Values() {
		if open[pl.Key] {
			fmt.Fprintf(w, "%s: the selection of %s depends on properties that not every MemberCluster declares; provide them with --clusters\n", pl.Spec.Origin, pl.Key)
		}
	}
}

// lacksProperty reports whether some cluster lacks some property.
func lacksProperty(clusters []placement.Cluster, names []string) bool {
	return slices.ContainsFunc(clusters, func(c placement.Cluster) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, known := c.Properties[name]
			return !known
		})
	})
}
