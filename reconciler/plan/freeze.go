package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// holdOf returns what keeps the newest content of a placement from its clusters: a freeze of the placement or of the
// fleet. Content that was available on every cluster before is not new: to return to it is a rollback, and a cluster
// that joins gets what the others have.
func (pl *placementPlanner) holdOf(p *Placement) rollout.Hold {
	if len(pl.memo.suspensions.freezes) == 0 || pl.wasProven(p) {
		return rollout.Hold{}
	}
	for _, s := range []ledger.Subject{{Placement: p.Key, Effect: ledger.Freezes}, {Effect: ledger.Freezes}} {
		if f, frozen := pl.memo.suspensions.freezes[s]; frozen && !(f.Overrun && p.begun()) {
			return rollout.Hold{Why: "new content waits: " + s.String() + " is " + f.String(), Until: f.Until}
		}
	}
	return rollout.Hold{}
}

// wasProven reports whether the newest content was available on every cluster before.
func (pl *placementPlanner) wasProven(p *Placement) bool {
	newest := pl.current.prepared.fingerprintOf()
	return newest == p.Record.Proven.Hash || slices.Contains(p.Record.ProvenBefore, newest)
}

// begun reports whether the rollout of the newest content has reached a cluster.
func (p *Placement) begun() bool {
	return slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool {
		return c.Binding.HasRevision() && !c.Binding.Removing && c.Binding.Index == p.Record.Index
	})
}
