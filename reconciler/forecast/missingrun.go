package forecast

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// missingRuns warns of placements whose new content, or removal, waits for a staged update run, of which the commit has none.
func missingRuns(s *hub.Snapshot, p *plan.Plan) (out problem.List) {
	for pl := range p.Placements.Values() {
		if pl.Spec == nil || pl.Spec.Spec.Strategy.Type != api.External || len(pl.Rollout.Waiting) == 0 ||
			slices.ContainsFunc(s.Runs, func(r *hub.StagedRun) bool { return r.Placement == pl.Key }) {
			continue
		}
		kind, strategy := "ClusterStagedUpdateRun", "NAME"
		if pl.Key.Namespace != "" {
			kind = "StagedUpdateRun"
		}
		for _, m := range s.Staged {
			if _, is := m.Spec.(*api.StagedUpdateStrategySpec); is && m.ID.Namespace == pl.Key.Namespace {
				strategy = m.ID.Name
			}
		}
		var clusters []string
		for _, w := range pl.Rollout.Waiting {
			clusters = append(clusters, w.Cluster)
		}
		out = append(out, problem.Problem{Origin: pl.Spec.Origin, Field: "spec.strategy.type", Severity: problem.Warning, Message: fmt.Sprintf(
			"%s waits on %s for a staged update run, and the commit has none; commit a %s with placementName: %s, stagedRolloutStrategyName: %s and state: Run, or annotate the placement with %s: %s",
			pl.Key, FewOf(clusters), kind, pl.Key.Name, strategy, api.StagedUpdateStrategyAnnotation, strategy)})
	}
	return out
}
