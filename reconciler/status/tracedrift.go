package status

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// TraceDrift returns the origin of the object of a drift; nil if the object is no longer placed
// there, or if the content assigned to the cluster is not known yet.
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

// HoldersOf returns the clusters that get an object from the commit in force, by cluster and
// placement, whether or not the rollout has reached them. unknown are clusters of the same
// placements whose content cannot be rendered.
func (r *Report) HoldersOf(id api.ID) (holders []Holder, unknown []string) {
	if r.plan == nil {
		return nil, nil
	}
	is := func(m *work.Manifest) bool { return m.ID == id }
	for _, p := range r.plan.Placements {
		before, failed := len(holders), []string(nil)
		for _, c := range p.Clusters {
			switch {
			case !scheduled(c) || c.Leaves(id):
			case c.Err != nil || c.Content.Hash == "":
				failed = append(failed, c.Binding.Cluster)
			case slices.ContainsFunc(c.Content.Manifests, is):
				holders = append(holders, Holder{c.Binding.Cluster, p.Key})
			}
		}
		if len(holders) > before {
			unknown = append(unknown, failed...)
		}
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Placement.String(), b.Placement.String()))
	})
	return holders, unknown
}

// PlacedDigest identifies what HoldersOf returns for all objects.
func (r *Report) PlacedDigest() string {
	if r.plan == nil {
		return ""
	}
	h := sha256.New()
	for _, p := range r.plan.Placements {
		fmt.Fprintln(h, p.Key)
		for _, c := range p.Clusters {
			if scheduled(c) {
				fmt.Fprintln(h, c.Binding.Cluster, c.Content.Hash, c.Err != nil, len(c.Yielded))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// scheduled reports whether a placement stays on a cluster.
func scheduled(c *plan.OnCluster) bool { return !c.Binding.Removing && !c.Binding.Unscheduled }
