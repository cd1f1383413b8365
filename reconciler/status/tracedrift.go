package status

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// TraceDrift returns where the object of a drift comes from; nil if the object is no longer
// placed there, or if the content that the cluster is assigned is not known yet.
func (r *Report) TraceDrift(d *Drift) *Trace {
	if r.plan == nil {
		return nil
	}
	id := d.ID()
	for _, w := range r.plan.Works[d.Cluster] {
		if w.Placement.String() != d.Placement {
			continue
		}
		for _, m := range w.Manifests {
			if m.ID == id {
				t := r.trace(w, m, d.Cluster)
				t.Drift = d
				return t
			}
		}
	}
	return nil
}

// A Holder is a cluster on which an object is placed, with the placement.
type Holder struct {
	Cluster   string
	Placement api.PlacementKey
}

// HoldersOf returns the clusters on which an object is placed, by cluster and placement.
func (r *Report) HoldersOf(id api.ID) []Holder {
	var out []Holder
	if r.plan == nil {
		return nil
	}
	for cluster, works := range r.plan.Works {
		for _, w := range works {
			if slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id }) {
				out = append(out, Holder{cluster, w.Placement})
			}
		}
	}
	slices.SortFunc(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Placement.String(), b.Placement.String()))
	})
	return out
}
