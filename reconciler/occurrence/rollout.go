package occurrence

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A RolloutChange is what has happened to the rollout of a placement. Stopped says that failed updates have stopped it, also if they did
// again after a user had resumed it, and Resumed that none stops it any more.
type RolloutChange struct{ Started, Finished, Stopped, Resumed bool }

// RolloutSince compares the records of a placement before and after. was is nil if there was none.
func RolloutSince(was, is *ledger.Placement) (c RolloutChange) {
	if was == nil {
		was = &ledger.Placement{}
	}
	stopped, before := isStopped(is), isStopped(was)
	c.Started = !is.RolloutStarted.Equal(was.RolloutStarted)
	c.Finished = !is.RolloutFinished.IsZero() && (c.Started || was.RolloutFinished.IsZero())
	c.Stopped = stopped && (!before || !is.Resumed.Equal(was.Resumed))
	c.Resumed = before && !stopped && !is.Deleted
	return c
}

// isStopped reports whether failed updates stop the rollout. Those of a staged update run are recorded and do not, and a placement that
// is being removed has no rollout.
func isStopped(p *ledger.Placement) bool {
	return len(p.Stops) > 0 && !p.Deleted && (p.Spec == nil || p.Spec.Strategy.Type != api.External)
}
