package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/intern"
)

// planWorks plans the works of all clusters. Clusters with the same work share it: most differ in nothing.
func (pl *placementPlanner) planWorks(p *Placement) {
	var recent intern.Recent[*work.Work]
	next := &work.Work{}
	for _, c := range p.Clusters {
		if c.work = shared(&recent, pl.planWork(p, c, next)); c.work == next {
			next = &work.Work{}
		}
	}
}

// maxSharedWorks limits how many works another one is compared with: clusters that wait, or that have other content, may
// each have their own.
const maxSharedWorks = 4

// shared returns the same work in the memory of an earlier one of its placement, or the work itself; it may be nil.
func shared(recent *intern.Recent[*work.Work], w *work.Work) *work.Work {
	if w == nil {
		return nil
	}
	return recent.Share(maxSharedWorks, func(earlier *work.Work) bool {
		return earlier.Revision == w.Revision && sameWork(earlier, w)
	}, func() *work.Work { return w })
}

// FinalWork returns the work of a cluster once the rollout has reached it, without the objects that are left to other
// placements. The placement has a spec and the content is known.
func (p *Placement) FinalWork(c *OnCluster) *work.Work {
	w := &work.Work{Placement: p.Key, Revision: c.Latest(), Strategy: strategy(p.Spec.Spec), Manifests: c.Content.Manifests}
	if len(c.Unusual().Yielded) > 0 {
		w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool { return c.Leaves(m.ID) })
	}
	return w
}

// planWork computes the work of one cluster in the memory of w, which it returns; nil if there is none yet.
func (pl *placementPlanner) planWork(p *Placement, c *OnCluster, w *work.Work) *work.Work {
	*w = newWork(p, c)
	w.AllowDelete = c.Binding.AllowDelete || pl.mayDelete(p, !c.Binding.Removing && c.UpToDate()) || pl.successorMayDelete(c.Binding.Cluster)
	w.Cause = deleteCause(p, c.Binding)
	c.DeleteAllowed = w.AllowDelete
	paused, proven := pl.planner.paused[c.Binding.Cluster] != "", c.Unusual().provenContent
	switch {
	case (paused || pl.planner.successorHas(p, c)) && c.Binding.Removing:
		w.Keep = true
	case c.Binding.Removing:
		w.Remove = true
		// Objects that the content or the cluster no longer has are deleted; only the removal of the placement itself
		// can abandon objects, and the removal from a cluster that was selected under another name. With ReportDiff
		// nothing is deleted, and objects are released.
		w.Abandon = p.Spec == nil && p.Record.Abandon || p.Spec != nil && c.Binding.Inherited
		if w.Strategy.Type == api.ReportDiff {
			w.Abandon, w.Strategy = true, api.ApplyStrategy{}
		}
	case !c.Binding.HasRevision():
		w.Keep, w.Awaited = true, awaitedContent(c, nil)
		if len(w.Awaited) == 0 || w.Strategy.Type == api.ReportDiff {
			return nil
		}
		return w
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
	case proven != nil && proven.Hash == c.Binding.Assigned.Hash:
		w.Manifests = proven.Manifests
	case c.PreviousContent != nil && c.PreviousContent.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.PreviousContent.Manifests
	default:
		w.Keep = true
	}
	w.Keep = w.Keep || paused
	w.DeletionBlocks = pl.deletionBlocksFor(p, c.Binding.Cluster, w)
	if !c.UpToDate() && w.Strategy.Type != api.ReportDiff {
		w.Awaited = awaitedContent(c, w.Manifests)
	}
	return w
}

// newWork returns a work of a cluster without objects.
func newWork(p *Placement, c *OnCluster) work.Work {
	w := work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		Suspended: c.Unusual().Suspended, SuspendedObjects: c.Unusual().suspendedObjects, ClusterDrift: c.Unusual().driftRule}
	if p.Spec != nil {
		w.Strategy, w.Drift = strategy(p.Spec.Spec), p.Spec.Annotations[api.DriftAnnotation]
	}
	return w
}

// deleteCause returns the reason for deleting objects that the placement no longer has on a cluster.
func deleteCause(p *Placement, b *placement.Binding) work.Cause {
	switch {
	case p.Spec == nil && p.Record.Into != (api.PlacementKey{}):
		return work.Cause{Commit: b.Unusual().RemovedBy, Why: "no longer selected since the placement was renamed to " + p.Record.Into.String()}
	case p.Spec == nil:
		return work.Cause{Commit: b.Unusual().RemovedBy, Why: "the placement was deleted"}
	case b.Removing:
		return work.Cause{Commit: b.Unusual().RemovedBy, Why: "the placement no longer selects the cluster"}
	}
	return work.Cause{Commit: b.Assigned.Commit, Why: "no longer in the placement's content"}
}

// awaitedContent returns the newest content for a cluster, if its objects are not those that the cluster is assigned now.
func awaitedContent(c *OnCluster, now []*work.Manifest) []*work.Manifest {
	same := func(a, b *work.Manifest) bool { return a == b || a.ID == b.ID }
	if c.Binding.Unscheduled || c.Binding.Removing || c.Err != nil || slices.EqualFunc(now, c.Content.Manifests, same) {
		return nil
	}
	return c.Content.Manifests
}

func strategy(s api.PlacementSpec) api.ApplyStrategy {
	if s.Strategy.ApplyStrategy == nil {
		return api.ApplyStrategy{}
	}
	return *s.Strategy.ApplyStrategy
}

// successorHas reports whether the new key of a renamed placement is assigned the same revision on a cluster, and
// the content of that revision is not known. Then the cluster keeps its objects under the earlier key as well.
func (pl *planner) successorHas(p *Placement, c *OnCluster) bool {
	if c.PreviousContent != nil || c.notRenderable || p.Record.Into == (api.PlacementKey{}) {
		return false
	}
	into := pl.Ledger.Placement(p.Record.Into)
	if into == nil {
		return false
	}
	e := into.Entry(c.Binding.Cluster)
	return e != nil && e.Binding.Assigned == c.Binding.Assigned && !e.Binding.Removing &&
		!pl.rendersInForce(p.Record.Into, c.Binding.Cluster, c.Binding.Assigned.Hash)
}

// rendersInForce reports whether the commit in force renders content with this hash for a cluster of a placement. Then
// the content is known even if the commit that first had it is lost.
func (pl *planner) rendersInForce(key api.PlacementKey, name, hash string) bool {
	now := pl.memo.prepare(pl.InForce, key)
	cluster, declared := pl.memo.members.Cluster(name)
	if now == nil || now.renderer == nil || !declared {
		return false
	}
	content, err := now.renderer.For(cluster)
	return err == nil && content.Hash == hash
}

// worksOf returns the works of each cluster in a plan. The lists of clusters on which nothing differs from an earlier
// plan are those of that plan.
func worksOf(p, earlier *Plan) map[string][]*work.Work {
	changed := map[string]bool{}
	for i, now := range p.Placements.All() {
		addChangedWorks(changed, now, earlier.placementNear(now.Key, i))
	}
	for i, old := range earlier.Placements.All() {
		addChangedWorks(changed, old, p.placementNear(old.Key, i))
	}
	if len(changed) == 0 {
		return earlier.Works
	}
	works := maps.Clone(earlier.Works)
	maps.DeleteFunc(works, func(cluster string, _ []*work.Work) bool { return changed[cluster] })
	for p := range p.Placements.Values() {
		for _, c := range p.Clusters {
			if name := c.Binding.Cluster; c.work != nil && changed[name] {
				if works[name] == nil {
					works[name] = make([]*work.Work, 0, len(earlier.Works[name])+1)
				}
				works[name] = append(works[name], c.work)
			}
		}
	}
	return works
}

// addChangedWorks adds the clusters of a placement on which another plan of it, which may be nil, has another work.
func addChangedWorks(changed map[string]bool, p, other *Placement) {
	if p == other {
		return
	}
	for i, c := range p.Clusters {
		if other != nil && i < len(other.Clusters) && other.Clusters[i] == c {
			continue
		}
		var was *work.Work
		if on := other.near(c.Binding.Cluster, i); on != nil {
			was = on.work
		}
		if !sameWork(c.work, was) {
			changed[c.Binding.Cluster] = true
		}
	}
}
