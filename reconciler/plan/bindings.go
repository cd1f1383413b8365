package plan

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// bindings returns the bindings of a placement on declared clusters. Clusters that are no longer declared are unbound
// at once, since their agents release everything they own. The list is in memory that the next placement uses, too.
func (pl *placementPlanner) bindings(p *Placement, record *ledger.Placement) []placement.Binding {
	if record == nil {
		return nil
	}
	pl.planner.memo.before = record.AppendBindings(pl.planner.memo.before[:0])
	return slices.DeleteFunc(pl.planner.memo.before, func(b placement.Binding) bool {
		_, declared := pl.planner.memo.members.Cluster(b.Cluster)
		if !declared {
			p.Unbind = append(p.Unbind, b.Cluster)
		}
		return !declared || isRemoved(record.Entry(b.Cluster))
	})
}

// isRemoved reports whether no object of the placement is left on a cluster; e may be nil.
func isRemoved(e *ledger.Entry) bool { return e != nil && e.Removed() }

// notRemoving returns the bindings that are not being removed; the list itself if that is all of them.
func notRemoving(bs []placement.Binding) []placement.Binding {
	removing := func(b placement.Binding) bool { return b.Removing }
	if !slices.ContainsFunc(bs, removing) {
		return bs
	}
	return slices.DeleteFunc(slices.Clone(bs), removing)
}

// planClusters plans the clusters that the scheduler has chosen, and those from which the placement is still being removed.
func (pl *placementPlanner) planClusters(p *Placement, before []placement.Binding, record *ledger.Placement) {
	p.Clusters = make([]*OnCluster, 0, len(p.Schedule.Bindings))
	for _, b := range p.Schedule.Bindings {
		p.Clusters = append(p.Clusters, pl.planCluster(b, record))
	}
	chosen := func(cluster string) bool {
		_, found := slices.BinarySearchFunc(p.Schedule.Bindings, cluster, func(b placement.Binding, name string) int { return strings.Compare(b.Cluster, name) })
		return found
	}
	for _, b := range before {
		if b.Removing && !chosen(b.Cluster) {
			p.Clusters = append(p.Clusters, pl.recordedCluster(b, record))
		}
	}
	slices.SortFunc(p.Clusters, func(a, b *OnCluster) int { return strings.Compare(a.Binding.Cluster, b.Binding.Cluster) })
}

// recordedCluster returns a cluster of the placement as the ledger has it.
func (pl *placementPlanner) recordedCluster(b placement.Binding, record *ledger.Placement) *OnCluster {
	suspended := pl.planner.memo.suspensions.Of(pl.current.placement.Key, b.Cluster)
	in := Circumstances{
		Refusal: pl.planner.Ledger.Refusal(b.Cluster), Suspended: suspended.Why, suspendedSince: suspended.Since,
		suspendedObjects: pl.planner.memo.suspensions.ObjectsOn(b.Cluster), driftRule: pl.planner.memo.members.DriftRule(b.Cluster),
	}
	c := pl.planner.memo.newCluster(OnCluster{Binding: pl.planner.memo.newBinding(b), Content: noContent})
	if record != nil {
		c.Entry = record.Entry(b.Cluster)
	}
	if c.Entry != nil {
		in.Deviation = c.Entry.Unusual().Deviation
	}
	c.setCircumstances(&in)
	pl.loadPreviousContent(c)
	if b.Circumstances != nil && pl.planner.paused[b.Cluster] == "" && pl.current.unclearRename == "" { // otherwise everything is kept
		c.Binding.Change(func(in *placement.Circumstances) { in.Leftover = nil })
	}
	return c
}

// planCluster plans a cluster that the scheduler has returned. If it is selected, its newest content is that of the commit in
// force, which the rollout may assign.
func (pl *placementPlanner) planCluster(b placement.Binding, record *ledger.Placement) *OnCluster {
	c := pl.recordedCluster(b, record)
	if b.Unscheduled {
		return c
	}
	c.Binding.Inherited = false // it is selected under its name
	if c.Entry == nil || c.Entry.Binding.Removing && c.Binding.BoundAt.IsZero() {
		c.Binding.BoundAt = pl.planner.Now
	}
	pl.planner.cancelRemoval(c)
	cluster, _ := pl.planner.memo.members.Cluster(b.Cluster)
	c.Content, c.Err = pl.current.prepared.renderer.For(cluster)
	latest := b.Assigned
	if latest.Hash != c.Content.Hash { // otherwise the commit stays the one that first had the content
		latest = placement.Revision{Commit: pl.planner.InForce.Commit.Hash, Hash: c.Content.Hash, Labels: pl.current.prepared.renderer.Labels(cluster)}
	}
	if pl.planner.memo.latest == nil || *pl.planner.memo.latest != latest {
		own := latest // the variable is not moved to the heap for all
		pl.planner.memo.latest = &own
	}
	c.latest = pl.planner.memo.latest
	if c.PreviousContent != nil && c.PreviousContent.Hash == c.Content.Hash {
		c.PreviousContent = c.Content // use the same memory for two equal contents
	}
	return c
}

// cancelRemoval ends the removal from a cluster that is selected again. The binding gets back its revision, so that no
// object is left behind, and the cluster counts until the rollout reaches it.
func (pl *planner) cancelRemoval(c *OnCluster) {
	if c.Binding.HasRevision() || c.Entry == nil || !c.Entry.Binding.Removing || isRemoved(c.Entry) {
		return
	}
	if pl.paused[c.Binding.Cluster] != "" {
		*c.Binding = c.Entry.Binding
		return
	}
	c.Binding.Assigned, c.Binding.AssignedAt = c.Entry.Binding.Assigned, pl.Now
}

// listChanges lists the changes that the ledger does not have yet.
func (pl *placementPlanner) listChanges(p *Placement, record *ledger.Placement) {
	for i, c := range p.Clusters {
		if c.Entry == nil || !c.Entry.Binding.Equal(*c.Binding) {
			p.Changed = append(p.Changed, i)
		}
	}
	if record == nil {
		return
	}
	for _, e := range record.EntriesThat(isRemoved) {
		if p.On(e.Binding.Cluster) == nil && !slices.Contains(p.Unbind, e.Binding.Cluster) {
			p.Unbind = append(p.Unbind, e.Binding.Cluster)
		}
	}
}
