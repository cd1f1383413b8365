package status

import "github.com/gitfleet/gitfleet/reconciler/plan"

// rolloutOf returns the rollout of the newest content of a placement, given the number of
// updated clusters; nil if there is none.
func rolloutOf(p *plan.Placement, updated int) *Rollout {
	if p.Spec == nil || p.Record.RolloutStarted.IsZero() {
		return nil
	}
	budget := p.Rollout.Budget
	return &Rollout{
		Started: p.Record.RolloutStarted, Finished: p.Record.RolloutFinished, Updated: updated, Target: budget.Target,
		Unavailable: max(0, budget.Target-budget.NotCounted-budget.Ready), MaxUnavailable: budget.MaxUnavailable,
	}
}
