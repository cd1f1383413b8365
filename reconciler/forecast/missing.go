package forecast

import (
	"fmt"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
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
