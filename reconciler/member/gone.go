package member

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// heldDeleted returns the outcome for an object that somebody deleted, and that is not created
// again until a user decides.
func (x *executor) heldDeleted(o outcome) outcome {
	o.gone, o.cond = true, diff.Applied()
	o.cond.Message = heldMessage(o.rule)
	if o.resolution != nil {
		o.cond.Message = o.resolution.Message
	}
	return o
}

// recordHeldDeletion records that an object is not created again for now.
func (s *session) recordHeldDeletion(o *outcome) {
	p, id := o.placement, o.manifest.ID
	anew := !s.leftDeleted(p, id)
	s.note(o.task, api.DriftHeld, ledger.Drift{Mode: s.driftRule(o.task).String(), Message: o.cond.Message, Deleted: true}, anew)
	if anew {
		s.cfg.Metrics.Undone.WithLabelValues(s.cfg.Name).Inc()
		s.cfg.Log.Warn("object was deleted, and is left so", "cluster", s.cfg.Name, "placement", p.String(), "object", id.String())
	}
}

// leftDeleted reports whether an object is missing because its drift, a deletion, is held.
func (s *session) leftDeleted(p api.PlacementKey, id api.ID) bool {
	d := s.memory[p][id]
	return d.State == api.DriftHeld && d.Deleted
}
