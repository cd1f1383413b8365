package forecast

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/reference"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// maxContents limits how many contents of a placement another one is compared with.
const maxContents = 4

// contentsOf returns the contents that a placement has on its clusters. Most clusters have the same, as far as it matters for
// references.
func contentsOf(p *plan.Placement) []reference.OnClusters {
	out := []reference.OnClusters{}
	var on [][]int32 // the clusters of each, by index
	at := 0          // the content of the last cluster
	for i, c := range p.Clusters {
		if i == 0 || !sharesManifests(p.Clusters[i-1], c) {
			at = position(&out, reference.OnClusters{Content: reference.ContentOf(placedOn(p, c)), Placement: p.Key})
		}
		if at == len(on) {
			on = append(on, nil)
		}
		on[at] = append(on[at], int32(i))
	}
	for i := range out {
		out[i].Clusters = func(yield func(string) bool) {
			for _, at := range on[i] {
				if !yield(p.Clusters[at].Binding.Cluster) {
					return
				}
			}
		}
	}
	return out
}

// position returns the index of a content among the last ones, to which it is added if it is not equal to any.
func position(all *[]reference.OnClusters, c reference.OnClusters) int {
	for i := max(0, len(*all)-maxContents); i < len(*all); i++ {
		if (*all)[i].Equal(c.Content) {
			return i
		}
	}
	*all = append(*all, c)
	return len(*all) - 1
}

// placedOn returns the objects of a placement for a cluster.
func placedOn(p *plan.Placement, c *plan.OnCluster) []reference.Placed {
	ignores := func(annotations map[string]string) bool {
		return annotations[api.MissingReferencesAnnotation] == api.MissingReferencesIgnore
	}
	out := make([]reference.Placed, 0, len(c.Content.Manifests))
	for _, m := range c.Content.Manifests {
		out = append(out, reference.Placed{Object: m.Object, Ignored: ignores(p.Spec.Annotations) || ignores(m.Object.Content.GetAnnotations())})
	}
	return out
}

// sharesManifests reports whether two clusters get the same manifests in memory.
func sharesManifests(a, b *plan.OnCluster) bool {
	x, y := a.Content.Manifests, b.Content.Manifests
	return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
}
