package plan

import (
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// planWorks computes the works of the placement's clusters.
func (pl *planner) planWorks(p *Placement) {
	pl.current.works = make([]clusterWork, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		if w, ok := pl.planWork(p, c); ok {
			pl.current.works = append(pl.current.works, clusterWork{c.Binding.Cluster, w})
		}
	}
}

// FinalWork returns the work of a cluster once the rollout has reached it, without the objects
// that are left to other placements. The placement has a spec and the content is known.
func (p *Placement) FinalWork(c *OnCluster) work.Work {
	w := work.Work{Placement: p.Key, Revision: c.Latest, Strategy: strategy(p.Spec.Spec), Manifests: c.Content.Manifests}
	if len(c.Yielded) > 0 {
		w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool {
			return slices.ContainsFunc(c.Yielded, func(y Yielded) bool { return y.ID == m.ID })
		})
	}
	return w
}

// planWork computes the work of one cluster; not ok if there is none yet.
func (pl *planner) planWork(p *Placement, c *OnCluster) (work.Work, bool) {
	w := work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		AllowDelete: c.Binding.AllowDelete || pl.mayDelete(p, !c.Binding.Removing && c.UpToDate()) || pl.successorMayDelete(c.Binding.Cluster),
		Cause:       deleteCause(p, &c.Binding), Suspended: c.Suspended, SuspendedObjects: c.suspendedObjects, ClusterDrift: c.driftRule}
	c.DeleteAllowed = w.AllowDelete
	if p.Spec != nil {
		w.Strategy, w.Drift = strategy(p.Spec.Spec), p.Spec.Annotations[api.DriftAnnotation]
	}
	paused := pl.paused[c.Binding.Cluster] != ""
	switch {
	case (paused || pl.inherited(p, c)) && c.Binding.Removing:
		w.Keep = true
	case c.Binding.Removing:
		w.Remove = true
		// Objects that the content or the cluster no longer has are deleted; only the removal
		// of the placement itself can abandon objects. With ReportDiff nothing is deleted, and
		// objects are released.
		w.Abandon = p.Spec == nil && p.Record.Abandon
		if w.Strategy.Type == api.ReportDiff {
			w.Abandon, w.Strategy = true, api.ApplyStrategy{}
		}
	case !c.Binding.Released():
		w.Keep, w.Awaited = true, pl.awaitedContent(c, nil)
		return w, len(w.Awaited) > 0 && w.Strategy.Type != api.ReportDiff
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
	case c.provenContent != nil && c.provenContent.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.provenContent.Manifests
	case c.heldContent != nil && c.heldContent.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.heldContent.Manifests
	default:
		w.Keep = true
	}
	w.Keep = w.Keep || paused
	w.Holds = pl.holdsFor(p, c.Binding.Cluster, &w)
	if !c.UpToDate() && w.Strategy.Type != api.ReportDiff {
		w.Awaited = pl.awaitedContent(c, w.Manifests)
	}
	return w, true
}

// deleteCause returns the reason for deleting objects that the placement no longer has on a
// cluster.
func deleteCause(p *Placement, b *placement.Binding) work.Cause {
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

// awaitedContent returns the newest content for a cluster, if its objects are not those that
// the cluster is assigned now.
func (pl *planner) awaitedContent(c *OnCluster, now []*work.Manifest) []*work.Manifest {
	if c.Binding.Unscheduled || c.Binding.Removing || c.Err != nil || pl.current.sameObjects(now, c.Content.Manifests) {
		return nil
	}
	return c.Content.Manifests
}

// sameObjects reports whether two contents have the same objects. Most clusters repeat the last
// comparison.
func (r *result) sameObjects(a, b []*work.Manifest) bool {
	if c := &r.lastComparison; !ledger.Identical(c.a, a) || !ledger.Identical(c.b, b) {
		*c = comparison{a, b, slices.EqualFunc(a, b, func(x, y *work.Manifest) bool { return x.ID == y.ID })}
	}
	return r.lastComparison.same
}

// A comparison caches the result of comparing the objects of two contents.
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
