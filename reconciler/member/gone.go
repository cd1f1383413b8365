package member

import (
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// lookAtDeleted is the outcome for an object that somebody deleted, and that stays deleted
// until somebody decides about that.
func (s *session) lookAtDeleted(o outcome) outcome {
	o.gone, o.cond = true, diff.Applied()
	o.cond.Message = heldMessage(s.driftRule(o.task))
	if r, known := s.resolution(o.placement, o.manifest.ID); known {
		o.cond.Message = r.Message
	}
	return o
}

// recallDeleted notes that an object is left deleted.
func (s *session) recallDeleted(o *outcome) {
	p, id := o.placement, o.manifest.ID
	anew := !s.leftDeleted(p, id)
	s.note(o.task, api.DriftHeld, ledger.Drift{Mode: s.driftRule(o.task).String(), Message: o.cond.Message, Deleted: true}, anew)
	if anew {
		s.cfg.Metrics.Undone.WithLabelValues(s.cfg.Name).Inc()
		s.cfg.Log.Warn("object was deleted, and is left so", "cluster", s.cfg.Name, "placement", p.String(), "object", id.String())
	}
}

// leftDeleted reports whether an object is gone because its deletion is held.
func (s *session) leftDeleted(p api.PlacementKey, id api.ID) bool {
	d := s.memory[p][id]
	return d.State == api.DriftHeld && d.Deleted
}
