package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// holdOf returns what keeps a content of a placement, with its number, from its clusters: a freeze of the placement or of the
// fleet. Content that was available on every cluster before is not new: to return to it is a rollback, and a cluster
// that joins gets what the others have.
func (pl *placementPlanner) holdOf(p *Placement, fingerprint func() string, index int) rollout.Hold {
	if len(pl.memo.suspensions.freezes) == 0 || p.wasProven(fingerprint()) {
		return rollout.Hold{}
	}
	for _, s := range []ledger.Subject{{Placement: p.Key, Effect: ledger.Freezes}, {Effect: ledger.Freezes}} {
		if f, frozen := pl.memo.suspensions.freezes[s]; frozen && !(f.Overrun && p.begun(index)) {
			return rollout.Hold{Why: "new content waits: " + s.String() + " is " + f.String(), Until: f.Until}
		}
	}
	return rollout.Hold{}
}

// wasProven reports whether a content was available on every cluster before.
func (p *Placement) wasProven(fingerprint string) bool {
	return fingerprint == p.Record.Proven.Hash || slices.Contains(p.Record.ProvenBefore, fingerprint)
}

// begun reports whether the rollout of the content with a number has reached a cluster.
func (p *Placement) begun(index int) bool {
	return slices.ContainsFunc(p.Clusters, func(c *OnCluster) bool {
		return c.Binding.HasRevision() && !c.Binding.Removing && c.Binding.Index == index
	})
}
