package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// rollOut asks who may move now, and writes the answer into the bindings.
func (t *thinker) rollOut(p *Placement) {
	in := rollout.Input{Policy: p.Spec.Spec.Policy, Strategy: p.Spec.Spec.Strategy, Now: t.Now, Resumed: p.Record.Resumed,
		MaxUnreachable: t.MaxUnreachable,
		StopOnFailure:  p.Spec.Annotations[api.OnFailureAnnotation] != api.OnFailureContinue}
	byCluster := make(map[string]*OnCluster, len(p.Clusters))
	for _, c := range p.Clusters {
		byCluster[c.Binding.Cluster] = c
		in.Bindings = append(in.Bindings, t.rolling(p, c))
	}
	p.Rollout = rollout.Next(in)
	if p.Rollout.Stopped != "" && t.offerProven(p, in.Bindings) {
		p.Rollout = rollout.Next(in)
	}
	for _, a := range p.Rollout.Assign {
		b := &byCluster[a.Cluster].Binding
		if a.Changed {
			b.Assigned, b.AssignedAt = a.Revision, t.Now
			if a.Revision == byCluster[a.Cluster].Latest {
				b.Index = p.Record.Index
			}
			b.AllowDelete = t.now.allowed
		}
		b.Risked = a.Risked
	}
	for _, cluster := range p.Rollout.Remove {
		if t.paused[cluster] == "" {
			byCluster[cluster].Binding.Removing = true
		}
	}
	for _, h := range p.Rollout.Held {
		byCluster[h.Cluster].Held = h.Message
	}
	for _, c := range p.Clusters {
		if c.Held != "" {
			c.Held += t.unmended(c)
		}
		if t.waits(c) {
			c.Held = "commit " + t.paused[c.Binding.Cluster] + ", which brought what the cluster holds, is still being read"
		}
	}
	t.now.wake = p.Rollout.Wake
}

// unmended says why what a waiting cluster holds is not put back if somebody
// changes it; empty if it is.
func (t *thinker) unmended(c *OnCluster) string {
	if c.Entry == nil || !c.Entry.Binding.Released() || c.had != nil || c.unmade || c.unread || c.UpToDate() {
		return ""
	}
	commit := c.Entry.Binding.Assigned.Commit
	why := "gives something else now"
	if err := t.Lost[commit]; err != nil && t.Past[commit] == nil {
		why = "cannot be read, which is tried again (" + err.Error() + ")"
	}
	return "; until then it is left as it is, and nothing there is put back: commit " + commit + ", which brought what it holds, " + why
}

// rolling is a cluster of a placement, as the rollout sees it.
func (t *thinker) rolling(p *Placement, c *OnCluster) rollout.Binding {
	seen := t.Ledger.Cluster(c.Binding.Cluster)
	b := rollout.Binding{
		Binding: c.Binding, Latest: c.Latest,
		Unreachable: seen == nil || !seen.Healthy, Suspended: c.Suspended,
		Seen: t.seen(p, c),
	}
	if t.waits(c) {
		b.Latest = placement.Revision{}
	}
	return b
}

// seen is what the member says of what it is assigned.
func (t *thinker) seen(p *Placement, c *OnCluster) rollout.Seen {
	if c.Err != nil && c.UpToDate() || c.unmade && c.Binding.Assigned == c.Entry.Binding.Assigned {
		return rollout.Seen{Hash: c.Binding.Assigned.Hash, Health: rollout.Failed, Since: c.Binding.AssignedAt}
	}
	w := c.Seen().Judged()
	if w == nil {
		return rollout.Seen{}
	}
	out := rollout.Seen{Hash: w.Revision.Hash, Since: c.Entry.AvailableSince}
	switch {
	case !w.Done:
		out.Health = rollout.Unknown
	case strategy(p.Spec.Spec).Type == api.ReportDiff && w.Applied() && len(c.Claims.Yields) == 0:
		out.Health = rollout.DiffReported
	case strategy(p.Spec.Spec).Type == api.ReportDiff:
		out.Health = rollout.DiffFailed
	case !w.Applied() || c.UpToDate() && len(c.Content.Refused) > 0 || lasting(c.Claims.Yields):
		out.Health = rollout.Failed
	// What passes on with another's rollout is there, in the other's content.
	// Nobody waits for that: two rollouts could wait for each other for ever.
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

// lasting reports whether any object is left to a placement that goes on
// wanting it.
func lasting(yields []ledger.Yield) bool {
	return slices.ContainsFunc(yields, func(y ledger.Yield) bool { return !y.Passing })
}
