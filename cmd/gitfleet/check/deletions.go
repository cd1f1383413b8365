package check

import (
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/plantext"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// blockedFindings returns a warning for each placement and reason for which deletions
// would be blocked.
func blockedFindings(o *forecast.Forecast, all []forecast.Deletion) []finding {
	type reason struct{ placement, why string }
	blocked := slices.DeleteFunc(slices.Clone(all), func(d forecast.Deletion) bool { return d.Blocked == "" })
	var out []finding
	for _, g := range output.GroupBy(blocked, func(d forecast.Deletion) reason { return reason{d.Placement, d.Blocked} }) {
		var clusters []string
		for _, on := range output.GroupBy(g.Items, func(d forecast.Deletion) string { return d.Cluster }) {
			clusters = append(clusters, on.Key)
		}
		p := problem.Problem{Severity: problem.Warning, Message: fmt.Sprintf(
			"%s: deleting %s on %s would be blocked, such as %s: %s; %s",
			g.Key.placement, output.Count(len(g.Items), "object"), forecast.FewOf(clusters), g.Items[0].ID(), g.Key.why, conditions.DeletionAdvice(g.Key.placement))}
		for _, spec := range o.Snapshot.Placements {
			if spec.Key.String() == g.Key.placement {
				p.Origin = spec.Origin
			}
		}
		out = append(out, finding{p, blockedDeletions})
	}
	return out
}

// unclearFindings returns a warning for each new placement that may be a renamed one.
func unclearFindings(o *forecast.Forecast) []finding {
	var out []finding
	for p := range o.Plan.Placements.Values() {
		if p.Spec != nil && p.Unclear != "" {
			out = append(out, finding{problem.Problem{Origin: p.Spec.Origin, Severity: problem.Warning, Message: p.Unclear}, ambiguousRename})
		}
	}
	return out
}

// examineDeletions finds which deletions of a commit would be blocked and which renames are
// ambiguous, and says which placements it renames and how much it deletes.
func examineDeletions(in offline.Input, s *hub.Snapshot, limit member.DeletionLimit) (found []finding, text string, err error) {
	o, err := in.Forecast(s)
	if err != nil {
		return nil, "", err
	}
	if why := o.Refusal(); why != "" {
		return []finding{{problem.Problem{Severity: problem.Error, Message: why}, invalid}}, "", nil
	}
	d, _ := o.Compared(limit)
	for _, r := range o.Renames {
		text += plantext.Rename(r.From.String(), r.To.String()) + "\n"
	}
	if len(d.Deletions) > 0 {
		text += plantext.Deletions(d.Deletions) + "\n"
	}
	for _, p := range slices.Concat(o.Unknown, o.Moved) {
		found = append(found, finding{p, doubtful})
	}
	return slices.Concat(found, unclearFindings(o), blockedFindings(o, d.Deletions)), text, nil
}
