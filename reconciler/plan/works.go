package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// planWorks computes the works of the placement's clusters.
func (pl *placementPlanner) planWorks(p *Placement) {
	for _, c := range p.Clusters {
		c.work = pl.planWork(p, c)
	}
}

// FinalWork returns the work of a cluster once the rollout has reached it, without the objects
// that are left to other placements. The placement has a spec and the content is known.
func (p *Placement) FinalWork(c *OnCluster) work.Work {
	w := work.Work{Placement: p.Key, Revision: c.Latest, Strategy: strategy(p.Spec.Spec), Manifests: c.Content.Manifests}
	if len(c.Yielded) > 0 {
		w.Manifests = slices.DeleteFunc(slices.Clone(w.Manifests), func(m *work.Manifest) bool { return c.Leaves(m.ID) })
	}
	return w
}

// planWork computes the work of one cluster; nil if there is none yet.
func (pl *placementPlanner) planWork(p *Placement, c *OnCluster) *work.Work {
	w := &work.Work{Placement: p.Key, Revision: c.Binding.Assigned, Abandon: p.Record.Abandon,
		AllowDelete: c.Binding.AllowDelete || pl.mayDelete(p, !c.Binding.Removing && c.UpToDate()) || pl.successorMayDelete(c.Binding.Cluster),
		Cause:       deleteCause(p, &c.Binding), Suspended: c.Suspended, SuspendedObjects: c.suspendedObjects, ClusterDrift: c.driftRule}
	c.DeleteAllowed = w.AllowDelete
	if p.Spec != nil {
		w.Strategy, w.Drift = strategy(p.Spec.Spec), p.Spec.Annotations[api.DriftAnnotation]
	}
	paused := pl.paused[c.Binding.Cluster] != ""
	switch {
	case (paused || pl.heldBySuccessor(p, c)) && c.Binding.Removing:
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
	case !c.Binding.HasRevision():
		w.Keep, w.Awaited = true, awaitedContent(c, nil)
		if len(w.Awaited) == 0 || w.Strategy.Type == api.ReportDiff {
			return nil
		}
		return w
	case c.UpToDate() && c.Err == nil && c.Content.Hash != "":
		w.Manifests = c.Content.Manifests
	case c.provenContent != nil && c.provenContent.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.provenContent.Manifests
	case c.previousContent != nil && c.previousContent.Hash == c.Binding.Assigned.Hash:
		w.Manifests = c.previousContent.Manifests
	default:
		w.Keep = true
	}
	w.Keep = w.Keep || paused
	w.Holds = pl.holdsFor(p, c.Binding.Cluster, w)
	if !c.UpToDate() && w.Strategy.Type != api.ReportDiff {
		w.Awaited = awaitedContent(c, w.Manifests)
	}
	return w
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

// updateWorks replaces the works of the clusters on which the placements differ from those of the last plan. A list is
// never changed, so that an unchanged list need not be compared.
func (m *Memo) updateWorks(placements []*Placement) {
	before, changed := m.placements, map[string]bool{}
	for _, p := range placements {
		addChangedWorks(changed, p, find(before, p.Key))
	}
	for _, old := range before {
		addChangedWorks(changed, old, find(placements, old.Key))
	}
	m.placements = placements
	if len(changed) == 0 {
		return
	}
	m.works = maps.Clone(m.works)
	maps.DeleteFunc(m.works, func(cluster string, _ []work.Work) bool { return changed[cluster] })
	for _, p := range placements {
		for _, c := range p.Clusters {
			if name := c.Binding.Cluster; c.work != nil && changed[name] {
				m.works[name] = append(m.works[name], *c.work)
			}
		}
	}
}

// find returns a placement in a sorted list; nil if the list does not have it.
func find(all []*Placement, key api.PlacementKey) *Placement {
	i, found := slices.BinarySearchFunc(all, key, func(p *Placement, key api.PlacementKey) int { return p.Key.Compare(key) })
	if !found {
		return nil
	}
	return all[i]
}

// addChangedWorks adds the clusters of one plan of a placement on which another plan has another work. A plan may be nil.
func addChangedWorks(changed map[string]bool, p, other *Placement) {
	if p == nil || p == other {
		return
	}
	for _, c := range p.Clusters {
		var was *work.Work
		if on := other.On(c.Binding.Cluster); on != nil {
			was = on.work
		}
		if c.work != was && (c.work == nil || was == nil || !c.work.Equal(was)) {
			changed[c.Binding.Cluster] = true
		}
	}
}
