package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// works notes what the placement's clusters shall hold.
func (t *thinker) works(p *Placement) {
	t.now.works = make([]assigned, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		if w, ok := t.work(p, c); ok {
			t.now.works = append(t.now.works, assigned{c.Binding.Cluster, w})
		}
	}
}

// work is what one cluster shall hold; not ok if it has nothing to do with it
// yet.
func (t *thinker) work(p *Placement, c *OnCluster) (work.Work, bool) {
	w := work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		AllowDelete: c.Binding.AllowDelete || t.permitted(p, !c.Binding.Removing && c.UpToDate()),
		Cause:       cause(p, &c.Binding), Suspended: c.Suspended, Spared: c.spared}
	c.DeleteAllowed = w.AllowDelete
	if p.Spec != nil {
		w.Strategy = strategy(p.Spec.Spec)
	}
	paused := t.paused[c.Binding.Cluster] != ""
	switch {
	case (paused || t.inherited(p, c)) && c.Binding.Removing:
		w.Keep = true
	case c.Binding.Removing:
		w.Remove = true
		// A cluster or content that goes is removed whatever becomes of the
		// placement: only the end of the placement itself abandons. Where nothing
		// is to be written nothing is deleted, and what is there is given up.
		w.Abandon = p.Spec == nil && p.Record.Abandon
		if w.Strategy.Type == api.ReportDiff {
			w.Abandon, w.Strategy = true, api.ApplyStrategy{}
		}
	case !c.Binding.Released():
		w.Keep, w.Awaited = true, t.awaited(c, nil)
		return w, len(w.Awaited) > 0 && w.Strategy.Type != api.ReportDiff
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
	case c.given != nil && c.given.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.given.Manifests
	case c.had != nil && c.had.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.had.Manifests
	default:
		w.Keep = true
	}
	w.Keep = w.Keep || paused
	w.Holds = t.holdsFor(p, c.Binding.Cluster, &w)
	if !c.UpToDate() && w.Strategy.Type != api.ReportDiff {
		w.Awaited = t.awaited(c, w.Manifests)
	}
	return w, true
}

// cause returns why objects are deleted that the placement no longer has on a cluster.
func cause(p *Placement, b *placement.Binding) work.Cause {
	switch {
	case p.Spec == nil && p.Record.Into != (api.PlacementKey{}):
		return work.Cause{Commit: b.RemovedBy, Why: "no longer selected since the placement was renamed to " + p.Record.Into.String()}
	case p.Spec == nil:
		return work.Cause{Commit: b.RemovedBy, Why: "the placement was deleted"}
	case b.Removing:
		return work.Cause{Commit: b.RemovedBy, Why: "the placement no longer selects the cluster"}
	}
	return work.Cause{Commit: b.Assigned.Commit, Why: "no longer in the placement's content"}
}

// awaited is the newest content for a cluster, if that has objects, or lacks
// some, that are not among what it holds now.
func (t *thinker) awaited(c *OnCluster, now []*work.Manifest) []*work.Manifest {
	if c.Binding.Unscheduled || c.Binding.Removing || c.Err != nil || t.now.sameObjects(now, c.Content.Manifests) {
		return nil
	}
	return c.Content.Manifests
}

// sameObjects reports whether two contents are of the same objects. On most
// clusters they are the two that were compared last.
func (th *thought) sameObjects(a, b []*work.Manifest) bool {
	if c := &th.compared; !identical(c.a, a) || !identical(c.b, b) {
		*c = comparison{a, b, slices.EqualFunc(a, b, func(x, y *work.Manifest) bool { return x.ID == y.ID })}
	}
	return th.compared.same
}

// A comparison is what came of comparing the objects of two contents.
type comparison struct {
	a, b []*work.Manifest
	same bool
}

func strategy(s api.PlacementSpec) api.ApplyStrategy {
	if s.Strategy.ApplyStrategy == nil {
		return api.ApplyStrategy{}
	}
	return *s.Strategy.ApplyStrategy
}
