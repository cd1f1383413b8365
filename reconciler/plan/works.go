package plan

import (
	"maps"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
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
		w.Keep, w.Awaited = true, pl.awaitedContent(c, nil)
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
		w.Awaited = pl.awaitedContent(c, w.Manifests)
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

// awaitedContent returns the newest content for a cluster, if its objects are not those that
// the cluster is assigned now.
func (pl *placementPlanner) awaitedContent(c *OnCluster, now []*work.Manifest) []*work.Manifest {
	if c.Binding.Unscheduled || c.Binding.Removing || c.Err != nil || pl.compared.sameIDs(now, c.Content.Manifests) {
		return nil
	}
	return c.Content.Manifests
}

// A comparison remembers whether two contents have the same objects.
type comparison struct {
	a, b []*work.Manifest
	same bool
}

// sameIDs reports whether two contents have the same objects.
func (c *comparison) sameIDs(a, b []*work.Manifest) bool {
	if ledger.Identical(a, b) {
		return true
	}
	if !ledger.Identical(a, c.a) || !ledger.Identical(b, c.b) {
		*c = comparison{a, b, slices.EqualFunc(a, b, func(x, y *work.Manifest) bool { return x == y || x.ID == y.ID })}
	}
	return c.same
}

func strategy(s api.PlacementSpec) api.ApplyStrategy {
	if s.Strategy.ApplyStrategy == nil {
		return api.ApplyStrategy{}
	}
	return *s.Strategy.ApplyStrategy
}

// updateWorks updates the works of the clusters on which the placements differ from those of the
// last plan. A list is never changed, only replaced, so that an unchanged list need not be
// compared.
func (m *Memo) updateWorks(placements []*Placement) {
	before, changed := m.placements, map[string]bool{}
	for _, p := range placements {
		if old := find(before, p.Key); old != p {
			addChangedWorks(changed, old, p)
		}
	}
	for _, old := range before {
		if find(placements, old.Key) == nil {
			addChangedWorks(changed, old, nil)
		}
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

// addChangedWorks adds the clusters on which the works of two plans of a placement differ. Nil
// stands for a placement without clusters.
func addChangedWorks(changed map[string]bool, old, now *Placement) {
	for _, pair := range [][2]*Placement{{old, now}, {now, old}} {
		if pair[0] == nil {
			continue
		}
		for _, c := range pair[0].Clusters {
			if !sameWork(c.work, pair[1].workOn(c.Binding.Cluster)) {
				changed[c.Binding.Cluster] = true
			}
		}
	}
}

// workOn returns the work of a cluster; nil if there is none. The placement may be nil.
func (p *Placement) workOn(cluster string) *work.Work {
	if p == nil {
		return nil
	}
	if c := p.On(cluster); c != nil {
		return c.work
	}
	return nil
}

// sameWork reports whether two works are equal and have the same manifests in memory.
func sameWork(a, b *work.Work) bool {
	return a == b || a != nil && b != nil && a.Revision == b.Revision && a.Strategy == b.Strategy &&
		sameManifests(a.Manifests, b.Manifests) && sameManifests(a.Awaited, b.Awaited) && a.Equal(b)
}

// sameManifests reports whether two lists have the same manifests in memory.
func sameManifests(a, b []*work.Manifest) bool { return ledger.Identical(a, b) || slices.Equal(a, b) }
