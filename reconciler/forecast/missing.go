package forecast

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/reference"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// missingReferences warns of objects that others on the same clusters refer to, and that these clusters do not get. Clusters
// with the same content are looked at once.
func missingReferences(s *hub.Snapshot, p *plan.Plan) problem.List {
	objects := map[string][]reference.Placed{} // of the first cluster of each group
	groups := groupsOf(p)
	for _, clusters := range groups {
		objects[clusters[0]] = nil
	}
	for _, pl := range p.Placements {
		if pl.Spec == nil {
			continue
		}
		ignored := pl.Spec.Annotations[api.MissingReferencesAnnotation] == api.MissingReferencesIgnore
		for _, c := range pl.Clusters {
			all, first := objects[c.Binding.Cluster]
			if !first {
				continue
			}
			for _, m := range c.Content.Manifests {
				all = append(all, reference.Placed{
					Object: m.Object, Placement: pl.Key,
					Ignored: ignored || m.Object.Content.GetAnnotations()[api.MissingReferencesAnnotation] == api.MissingReferencesIgnore,
				})
			}
			objects[c.Binding.Cluster] = all
		}
	}
	search := reference.NewSearch(s.Objects)
	for _, clusters := range groups {
		search.Cluster(clusters, objects[clusters[0]])
	}
	var out problem.List
	for _, f := range search.Findings() {
		if len(s.Unreadable) > 0 && !f.InHub { // a document that cannot be decrypted, which is reported, may have it
			continue
		}
		message := fmt.Sprintf("%s refers to %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		if f.IsDefinition() {
			message = fmt.Sprintf("%s needs %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		}
		out = append(out, problem.Problem{Origin: f.From.Origin, Field: f.Field, Severity: problem.Warning, Message: message})
	}
	return out
}

// groupsOf returns the clusters with placements, in groups that get the same content of the same placements; both are sorted.
func groupsOf(p *plan.Plan) [][]string {
	type step struct {
		group int
		hash  string
	}
	numbers, number := map[string]*int{}, 0 // each placement divides the groups
	for _, pl := range p.Placements {
		if pl.Spec == nil {
			continue
		}
		var last step
		divided, now := map[step]int{}, 0
		for _, c := range pl.Clusters {
			group := numbers[c.Binding.Cluster]
			if group == nil {
				group = new(int)
				numbers[c.Binding.Cluster] = group
			}
			if here := (step{*group, c.Content.Hash}); now == 0 || here != last {
				if now = divided[here]; now == 0 {
					number++
					now = number
					divided[here] = now
				}
				last = here
			}
			*group = now
		}
	}
	groups := map[int][]string{}
	for _, cluster := range slices.Sorted(maps.Keys(numbers)) {
		groups[*numbers[cluster]] = append(groups[*numbers[cluster]], cluster)
	}
	return slices.SortedFunc(maps.Values(groups), slices.Compare)
}
