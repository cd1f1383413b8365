package forecast

import (
	"fmt"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/reference"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// missingReferences warns of objects that others on the same clusters refer to, and that these clusters do not get.
func missingReferences(s *hub.Snapshot, p *plan.Plan, known facts) problem.List {
	var all []reference.OnClusters
	for pl := range p.Placements.Values() {
		if pl.Spec != nil {
			all = append(all, known.of(pl).contentList()...)
		}
	}
	var out problem.List
	for _, f := range reference.Missing(s.Objects, all) {
		if len(s.Unreadable) > 0 && !f.InHub { // a document that cannot be decrypted, which is reported, may have it
			continue
		}
		message := fmt.Sprintf("%s refers to %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		switch {
		case f.IsNamespace():
			message = fmt.Sprintf("%s is in %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		case f.IsDefinition():
			message = fmt.Sprintf("%s needs %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		}
		out = append(out, problem.Problem{Origin: f.From.Origin, Field: f.Field, Severity: problem.Warning, Message: message})
	}
	return out
}

// mostContents limits how many contents of a placement another one is compared with.
const mostContents = 4

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
	for i := max(0, len(*all)-mostContents); i < len(*all); i++ {
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
