package member

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// Drift that is not reverted is held: the object stays as others changed it until a user
// decides. It is applied again once it no longer differs, once Git has a new version of it, or
// once a Resolution requests that it is restored.

// heldMessage returns the message of a held object before a decision.
func heldMessage(r api.DriftRule) string {
	return "left as it is, as its drift mode asks: " + r.String()
}

// driftRule returns the rule that applies to the drift of an object.
func (s *session) driftRule(t task) api.DriftRule {
	w := s.works[t.placement]
	return api.DriftRules{
		Object: t.manifest.Object.Object.GetAnnotations()[api.DriftAnnotation], Kind: s.cfg.DriftKinds[t.manifest.ID.GroupKind()],
		Placement: w.Drift, Cluster: w.ClusterDrift, Fleet: s.cfg.DriftMode,
	}.At(time.Now())
}

// reverts reports whether drift of an object is reverted at once.
func (s *session) reverts(t task) bool {
	mode := s.driftRule(t).Mode
	return mode != api.DriftPropose && mode != api.DriftReport
}

// Resolve replaces the decisions about held drifts. It never blocks; a newer call replaces one
// that has not been used yet. Only one goroutine may call it.
func (a *Agent) Resolve(all ledger.Resolutions) {
	select {
	case <-a.resolving:
	default:
	}
	a.resolving <- all
}

// holds reports whether the drift of an object is held. That of an object that lost its label
// is not, since no edit of the manifest could express it.
func (s *session) holds(t task, l *observed.Object) bool {
	if l == nil && s.driftRule(t).Mode != api.DriftPropose || l != nil && l.Fleet != s.cfg.Fleet || s.reverts(t) || s.works.protects(t.placement) || diff.CompareAfter(s.works[t.placement].Strategy) {
		return false
	}
	r, known := s.resolution(t.placement, t.manifest.ID)
	return !known || !r.PutBack
}

// resolution returns the decision about the held drift of an object.
func (s *session) resolution(p api.PlacementKey, id api.ID) (ledger.Resolution, bool) {
	d := s.memory[p][id]
	r, known := s.resolutions[ledger.DriftKey{Placement: p, ID: id}]
	return r, known && d.State == api.DriftHeld && r.Fingerprint == ledger.Fingerprint(d.Paths, d.Digest)
}

// resolve executes the decisions about held drifts.
func (s *session) resolve(ctx context.Context) {
	again, news := map[api.ID]bool{}, map[api.ID]bool{}
	for key := range s.resolutions {
		r, known := s.resolution(key.Placement, key.ID)
		d := s.memory[key.Placement][key.ID]
		switch {
		case !known:
		case r.PutBack, r.Again:
			delete(s.trouble, key.ID)
			again[key.ID], news[key.ID] = true, true
		case d.Message != r.Message:
			d.Message = connection.Cut(r.Message)
			s.memory.Put(key.Placement, d)
			news[key.ID] = true
		}
	}
	s.process(ctx, again)
	if len(news) > 0 {
		s.reportTouched(ctx, news)
	}
}

// compareHeld compares an object whose drift is held. If it still differs, it is not written.
func (x *executor) compareHeld(ctx context.Context, t task) outcome {
	o := outcome{task: t, do: diff.Nothing}
	live, c, err := x.readAndCompare(ctx, t)
	switch {
	case err != nil:
		return x.readFailed(o, diff.DriftCompareFailed(err), err)
	case live == nil && t.rule.Mode == api.DriftPropose:
		return x.heldDeleted(o)
	case t.absent && live != nil: // the object lost its label
		t.held = false
		return x.readAndApply(ctx, t)
	case live == nil || len(c.diffs) == 0:
		t.drift = false // nothing changes: the apply only owns the fields again
		return x.readAndApply(ctx, t)
	}
	o.diffs, o.gen = c.diffs, live.GetGeneration()
	o.cond = diff.Applied()
	o.cond.Message = heldMessage(t.rule)
	if t.resolution != nil {
		o.cond.Message = t.resolution.Message
	}
	return o
}

// accepts reports whether Git may have accepted the drift of an object: its drift is held, and
// there is a new version of it.
func (s *session) accepts(t task, l *observed.Object) bool {
	return l != nil && l.Fleet == s.cfg.Fleet && t.item != nil && t.item.Hash != "" &&
		s.memory.State(t.placement, t.manifest.ID) == api.DriftHeld
}

// accept does not write an object that already equals its new version. Otherwise the new
// version is applied as usual.
func (x *executor) accept(ctx context.Context, t task) outcome {
	live, c, err := x.readAndCompare(ctx, t)
	if err != nil || live == nil || len(c.diffs) > 0 || live.GetUID() != t.item.UID {
		return x.readAndApply(ctx, t)
	}
	accepted, facts := observed.Of(live), x.facts(t, live)
	if accepted.Managed == "" || facts.Owner != diff.Ours || facts.CoOwned {
		return x.readAndApply(ctx, t)
	}
	return outcome{task: t, do: diff.Nothing, cond: diff.Applied(), gen: live.GetGeneration(), accepted: accepted}
}

// recordAccepted records in the inventory that an object already equals its new version.
func (s *session) recordAccepted(o *outcome, touched map[api.PlacementKey]bool) {
	it := *o.item
	it.Hash, it.Managed, it.Others = o.manifest.Hash, o.accepted.Managed, o.accepted.Foreign()
	it.Version, it.Commit = o.res.Version, s.works[o.placement].Revision.Commit
	s.inv[o.placement].Items.Put(it)
	touched[o.placement] = true
	s.memory.End(o.placement, s.memory[o.placement][o.manifest.ID])
}

func (x *executor) readAndCompare(ctx context.Context, t task) (*unstructured.Unstructured, comparison, error) {
	live, err := x.conn.Read(ctx, t.res, t.manifest.ID)
	if err != nil || live == nil {
		return nil, comparison{}, err
	}
	c, err := x.compare(ctx, t, live, x.rivals(ctx, t, live))
	return live, c, err
}

// recheckHeldDrifts schedules comparisons of the objects that were held before this connection,
// since ownership does not show every change of them.
func (s *session) recheckHeldDrifts() {
	for _, of := range s.memory {
		for id, d := range of {
			if d.State == api.DriftHeld {
				s.suspects[id] = true
			}
		}
	}
}
