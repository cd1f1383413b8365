package status

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// TraceDrift says where the object of a drift comes from; nil if nothing is to be held
// there any more.
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

// ClustersWith are the clusters that shall hold an object, sorted.
func (r *Report) ClustersWith(id api.ID) []string {
	var out []string
	if r.plan == nil {
		return nil
	}
	for cluster, works := range r.plan.Works {
		if slices.ContainsFunc(works, func(w work.Work) bool {
			return slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id })
		}) {
			out = append(out, cluster)
		}
	}
	slices.Sort(out)
	return out
}
