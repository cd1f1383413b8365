package plan

import (
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// rollOut asks who may move now, and writes the answer into the bindings.
func (t *thinker) rollOut(p *Placement, record *ledger.Placement) {
	in := rollout.Input{Policy: p.Spec.Spec.Policy, Strategy: p.Spec.Spec.Strategy, Now: t.Now,
		StopOnFailure: p.Spec.Annotations[api.OnFailureAnnotation] != api.OnFailureContinue}
	byCluster := make(map[string]*OnCluster, len(p.Clusters))
	for _, c := range p.Clusters {
		byCluster[c.Binding.Cluster] = c
		in.Bindings = append(in.Bindings, t.rolling(p, c))
	}
	p.Rollout = rollout.Next(in)
	for _, a := range p.Rollout.Assign {
		b := &byCluster[a.Cluster].Binding
		if a.Changed {
			b.Assigned, b.AssignedAt = a.Revision, t.Now
			b.AllowDelete = allows(t.Head.Commit.Message, p.Key)
		}
		b.Risked = a.Risked
	}
	for _, cluster := range p.Rollout.Remove {
		byCluster[cluster].Binding.Removing = true
	}
	for _, h := range p.Rollout.Held {
		byCluster[h.Cluster].Held = h.Message
	}
	t.wakeAt(p.Rollout.Wake)
}

func (t *thinker) wakeAt(at time.Time) {
	if !at.IsZero() && (t.plan.Wake.IsZero() || at.Before(t.plan.Wake)) {
		t.plan.Wake = at
	}
}

// rolling is a cluster of a placement, as the rollout sees it.
func (t *thinker) rolling(p *Placement, c *OnCluster) rollout.Binding {
	seen := t.Ledger.Cluster(c.Binding.Cluster)
	return rollout.Binding{
		Binding: c.Binding, Latest: c.Latest,
		Unreachable: seen == nil || !seen.Healthy,
		Seen:        t.seen(p, c),
	}
}

// seen is what the member says of what it is assigned.
func (t *thinker) seen(p *Placement, c *OnCluster) rollout.Seen {
	if c.Err != nil && c.UpToDate() {
		return rollout.Seen{Hash: c.Binding.Assigned.Hash, Health: rollout.Failed, Since: c.Binding.AssignedAt}
	}
	w := c.Seen()
	if w == nil {
		return rollout.Seen{}
	}
	out := rollout.Seen{Hash: w.Revision.Hash, Since: c.Entry.AvailableSince}
	switch {
	case !w.Done:
		out.Health = rollout.Unknown
	case strategy(p.Spec.Spec).Type == api.ReportDiff && w.Applied():
		out.Health = rollout.DiffReported
	case strategy(p.Spec.Spec).Type == api.ReportDiff:
		out.Health = rollout.DiffFailed
	case !w.Applied() || c.UpToDate() && len(c.Content.Refused) > 0:
		out.Health = rollout.Failed
	case !w.Available():
		out.Health = rollout.Unavailable
	case w.Untrackable > 0:
		out.Health = rollout.Untracked
	default:
		out.Health = rollout.Available
	}
	if out.Since.IsZero() {
		out.Since = w.At
	}
	return out
}
