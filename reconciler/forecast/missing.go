package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/reference"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// missingReferences warns of objects that others on the same clusters refer to, and that these clusters do not get. Clusters
// with the same content are looked at once.
func missingReferences(s *hub.Snapshot, p *plan.Plan) problem.List {
	contents := map[string][]*plan.OnCluster{}
	placements := map[*plan.OnCluster]*plan.Placement{}
	for _, pl := range p.Placements {
		if pl.Spec == nil {
			continue
		}
		for _, c := range pl.Clusters {
			contents[c.Binding.Cluster] = append(contents[c.Binding.Cluster], c)
			placements[c] = pl
		}
	}
	same := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		var key strings.Builder
		for _, c := range contents[name] {
			fmt.Fprintf(&key, "%s %s;", placements[c].Key, c.Content.Hash)
		}
		same[key.String()] = append(same[key.String()], name)
	}
	search := reference.NewSearch(s.Objects)
	for _, key := range slices.Sorted(maps.Keys(same)) {
		var objects []reference.Placed
		for _, c := range contents[same[key][0]] {
			pl := placements[c]
			ignored := pl.Spec.Annotations[api.MissingReferencesAnnotation] == api.MissingReferencesIgnore
			for _, m := range c.Content.Manifests {
				objects = append(objects, reference.Placed{
					Object: m.Object, Placement: pl.Key,
					Ignored: ignored || m.Object.Content.GetAnnotations()[api.MissingReferencesAnnotation] == api.MissingReferencesIgnore,
				})
			}
		}
		search.Cluster(same[key], objects)
	}
	var out problem.List
	for _, f := range search.Findings() {
		message := fmt.Sprintf("%s refers to %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		if f.IsDefinition() {
			message = fmt.Sprintf("%s needs %s, which %s would not get: %s", f.From.ID, f.Name(), FewOf(f.Clusters), f.Fix())
		}
		out = append(out, problem.Problem{Origin: f.From.Origin, Field: f.Field, Severity: problem.Warning, Message: message})
	}
	return out
}
