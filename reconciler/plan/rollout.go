package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// rollOut asks who may move now, and writes the answer into the bindings.
func (t *thinker) rollOut(p *Placement) {
	in := rollout.Input{Policy: p.Spec.Spec.Policy, Strategy: p.Spec.Spec.Strategy, Now: t.Now, Resumed: p.Record.Resumed,
		Stops: t.stops(p), MaxUnreachable: t.MaxUnreachable, AvailableTimeout: t.AvailableTimeout,
		StopOnFailure: p.Spec.Annotations[api.OnFailureAnnotation] != api.OnFailureContinue}
	if timeout, err := time.ParseDuration(p.Spec.Annotations[api.AvailableTimeoutAnnotation]); err == nil {
		in.AvailableTimeout = timeout // the loader has refused what cannot be read
	}
	byCluster := make(map[string]*OnCluster, len(p.Clusters))
	for _, c := range p.Clusters {
		byCluster[c.Binding.Cluster] = c
		in.Bindings = append(in.Bindings, t.rolling(p, c))
	}
	p.Rollout = rollout.Next(in)
	if p.Rollout.Stopped != "" && t.offerProven(p, in.Bindings) {
		p.Rollout = rollout.Next(in)
	}
	if !slices.Equal(p.Record.Stops, p.Rollout.Stops) {
		p.Record.Stops, p.Noted = p.Rollout.Stops, true
	}
	for _, a := range p.Rollout.Assign {
		b := &byCluster[a.Cluster].Binding
		if a.Changed {
			b.Assigned, b.AssignedAt = a.Revision, t.Now
			if a.Revision == byCluster[a.Cluster].Latest {
				b.Index = p.Record.Index
			}
			b.AllowDelete = t.permitted(p, a.Revision == byCluster[a.Cluster].Latest)
		}
		b.Risked = a.Risked
	}
	for _, cluster := range p.Rollout.Remove {
		if t.paused[cluster] == "" {
			b := &byCluster[cluster].Binding
			if !b.Removing {
				b.RemovedBy = t.Head.Commit.Hash
			}
			// What allowed its content to replace another does not allow this.
			b.Removing, b.AllowDelete = true, b.Removing && b.AllowDelete || t.now.allowed
		}
	}
	for _, h := range p.Rollout.Held {
		byCluster[h.Cluster].Held = h.Message
	}
	for _, f := range p.Rollout.Failed {
		byCluster[f.Cluster].fail(f)
	}
	for _, c := range p.Clusters {
		switch {
		case c.Held != "" && c.Foreign != "":
			c.Held = c.Foreign
		case c.Held != "" && t.denied(c) != "":
			c.Held = t.denied(c)
		case c.Held != "":
			c.Held += t.unmended(c)
		}
		if t.waits(c) {
			c.Held = "commit " + t.paused[c.Binding.Cluster] + ", which brought what the cluster holds, is still being read"
		}
	}
	t.now.wake = p.Rollout.Wake
}

// denied returns the missing permissions of a cluster that cannot be used for that reason;
// empty if it can be used or if the reason is another.
func (t *thinker) denied(c *OnCluster) string {
	if seen := t.Ledger.Cluster(c.Binding.Cluster); seen != nil && !seen.Healthy {
		return seen.Denied()
	}
	return ""
}

// stops are the failed updates that are written down, each with what its cluster
// would get now, also if it is not wanted or not declared any more.
func (t *thinker) stops(p *Placement) []rollout.Stop {
	var out []rollout.Stop
	for _, s := range p.Record.Stops {
		cluster, declared := t.memo.fleet.cluster(s.Cluster)
		if !declared {
			cluster = work.WithLabels(placement.Cluster{Name: s.Cluster}, s.Failed)
		}
		content, _ := t.now.now.renderer.For(cluster) // one with errors has a hash as well
		out = append(out, rollout.Stop{Stop: s, Latest: content.Hash})
	}
	return out
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

// fail notes that what the cluster holds has failed. One that had its time says what
// it still waited for.
func (c *OnCluster) fail(f rollout.Failure) {
	c.Failure, c.TimedOut = f.Reason, f.TimedOut
	if !f.TimedOut {
		return
	}
	for _, o := range c.Seen().Judged().Exceptions {
		switch {
		case !o.Applied.OK:
			c.Failure += ": " + o.ID.String() + ": " + o.Applied.Message
		case !o.Available.OK:
			c.Failure += ": " + o.ID.String() + ": " + o.Available.Message
		default:
			continue
		}
		return
	}
}

// rolling is a cluster of a placement, as the rollout sees it.
func (t *thinker) rolling(p *Placement, c *OnCluster) rollout.Binding {
	seen := t.Ledger.Cluster(c.Binding.Cluster)
	b := rollout.Binding{
		Binding: c.Binding, Latest: c.Latest,
		Unreachable: seen == nil || !seen.Healthy || c.Foreign != "", Suspended: c.Suspended,
		Seen: t.seen(p, c),
	}
	switch {
	case c.Foreign != "":
		b.UnusableWhy = "another fleet holds it"
	case b.Unreachable && seen != nil && len(seen.Forbidden) > 0:
		b.UnusableWhy = "permissions are missing on it"
	}
	if t.waits(c) {
		b.Latest = placement.Revision{}
	}
	return b
}

// seen is what the member says of what it is assigned.
func (t *thinker) seen(p *Placement, c *OnCluster) rollout.Seen {
	if c.Err != nil && c.UpToDate() || c.unmade && c.Binding.Assigned == c.Entry.Binding.Assigned {
		return rollout.Seen{Hash: c.Binding.Assigned.Hash, Health: rollout.Failed, Since: c.Binding.AssignedAt, Failure: c.unmadeBecause()}
	}
	all := c.Seen()
	w := all.Judged()
	if w == nil {
		return rollout.Seen{}
	}
	out := rollout.Seen{Hash: w.Revision.Hash, Since: c.Entry.AvailableSince, Partial: w != all}
	failed, reportsOnly := w.Failed(), strategy(p.Spec.Spec).Type == api.ReportDiff
	switch {
	case !w.Done, w.Compared && !reportsOnly:
		out.Health = rollout.Unknown
	case reportsOnly && w.Applied() && len(c.Claims.Yields) == 0:
		out.Health = rollout.DiffReported
	case reportsOnly:
		out.Health, out.Failure = rollout.DiffFailed, c.failure(w)
	case failed != nil && !failed.Applied.OK || c.UpToDate() && len(c.Content.Refused) > 0 || lasting(c.Claims.Yields):
		out.Health, out.Failure = rollout.Failed, c.failure(w)
	// What passes on with another's rollout is there, in the other's content.
	// Nobody waits for that: two rollouts could wait for each other for ever.
	case !w.Available():
		out.Health, out.Failure, out.Since = rollout.Unavailable, c.failure(w), t.unavailableSince(c)
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

// unavailableSince is when the time began that a cluster may take to become
// available. It may have become so unseen while it could not be reached, and then
// the time begins anew; as long as it was not heard of since gitfleet was started,
// the time is not over.
func (t *thinker) unavailableSince(c *OnCluster) time.Time {
	if !c.Entry.Heard() {
		return t.Now
	}
	since := c.Entry.UnavailableSince
	if seen := t.Ledger.Cluster(c.Binding.Cluster); seen != nil && seen.Since.After(since) {
		return seen.Since
	}
	return since
}

// failure names the first object that failed, and why; empty if none did.
func (c *OnCluster) failure(w *ledger.WorkSeen) string {
	if o := w.Failed(); o != nil {
		return o.ID.String() + ": " + cmp.Or(o.Failure, o.Applied.Message)
	}
	if c.UpToDate() && len(c.Content.Refused) > 0 {
		return c.Content.Refused[0].ID.String() + ": " + c.Content.Refused[0].Message
	}
	for _, y := range c.Claims.Yields {
		if !y.Passing {
			return y.ID.String() + ": the placement " + y.To.String() + " has it on this cluster"
		}
	}
	return ""
}

// unmadeBecause is why there is no content for the cluster.
func (c *OnCluster) unmadeBecause() string {
	if c.Err != nil {
		return c.Err.Error()
	}
	return "what it was assigned cannot be made any more"
}

// lasting reports whether any object is left to a placement that goes on
// wanting it.
func lasting(yields []ledger.Yield) bool {
	return slices.ContainsFunc(yields, func(y ledger.Yield) bool { return !y.Passing })
}
