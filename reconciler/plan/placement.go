package plan

import (
	"reflect"
	"slices"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// plan plans one placement, without considering objects that other placements select as well.
func (pl *placementPlanner) plan(p *Placement, record *ledger.Placement) {
	if pl.current.unclearRename != "" {
		pl.keepUnclear(p, record, pl.current.unclearRename)
		return
	}
	if p.Spec == nil {
		pl.removePlacement(p, record)
	} else {
		pl.updateRecord(p, record)
		pl.decide(p, record)
	}
	p.RecordChanged = record == nil || !reflect.DeepEqual(p.Record, *record)
}

func (pl *placementPlanner) updateRecord(p *Placement, record *ledger.Placement) {
	if record == nil || record.Deleted || record.Created.IsZero() {
		p.Record = ledger.Placement{Index: -1, Created: pl.planner.InForce.Commit.Time, Rebuilt: pl.planner.Rebuilt || record != nil && !record.Deleted && record.Rebuilt}
		if record != nil {
			p.Record.Formerly = record.Formerly // clusters may still hold content of these keys
			if !record.Deleted {
				p.Record.LostRuns = record.LostRuns
			}
		}
	} else {
		p.Record = *record
	}
	p.Record.LostRuns = pl.planner.lostRuns(p.Key, p.Record.LostRuns)
	if p.Record.SpecHash != p.Spec.SpecHash {
		p.Record.Generation++
		p.Record.SpecHash, p.Record.Commit, p.Record.Spec = p.Spec.SpecHash, pl.planner.InForce.Commit.Hash, nil
	}
	if p.Record.Spec == nil {
		p.Record.Spec = &p.Spec.Spec
	}
	p.Record.Abandon = abandons(p.Spec.Spec)
}

// abandons reports whether the objects of a placement stay when the placement is deleted. With ReportDiff nothing is
// deleted, not even what was applied in another mode.
func abandons(s api.PlacementSpec) bool {
	if s.Strategy.ReportsDiff() {
		return true
	}
	d := s.Strategy.DeleteStrategy
	return d != nil && d.PropagationPolicy == api.DeletePropagationAbandon
}

// decide schedules the selected objects and advances the rollout. Memo.prepare has selected them.
func (pl *placementPlanner) decide(p *Placement, record *ledger.Placement) {
	content := pl.current.prepared
	p.Selection = content.selection
	for _, w := range content.selection.Warnings {
		p.warn(w.Field, w.Message)
	}
	before := pl.bindings(p, record)
	if p.Selection.Invalid != "" {
		pl.keepPlacement(p, before, record)
		return
	}
	pl.markInUse(content)
	p.warn("", content.renderer.Warnings()...)
	if hash := content.renderer.Hash(); hash != p.Record.Content {
		p.Record.Content = hash
		pl.startRollout(p)
	}
	pl.updateAllowedContent(p)
	evict(pl, p, before, record)
	bound := keepRebuilt(p.Spec.Spec.Policy, notRemoving(before))
	p.Request = &placement.Request{
		Key: p.Key, Policy: pl.reducePolicyAfterLoss(p, bound), Clusters: withoutEvicting(p, pl.planner.memo.members.List, before), Bindings: bound, Others: pl.planner.clustersOfOthers(p.Spec),
	}
	p.Schedule = pl.schedule(p)
	p.warn("spec.policy", p.Schedule.Notes...)
	pl.listAbsent(p)
	pl.warnIdleOverrides(p)
	pl.planClusters(p, before, record)
	pl.advanceRollout(p)
	p.Assigned, p.Rollout.Assign = len(p.Rollout.Assign), changedRevisions(p.Rollout.Assign)
	pl.finishRollout(p)
	pl.recordProven(p)
	pl.listChanges(p, record)
	pl.planWorks(p)
	p.dropBindings()
}

// changedRevisions returns the assignments that change a revision; the others are in the bindings.
func changedRevisions(all []rollout.Assignment) []rollout.Assignment {
	var out []rollout.Assignment
	for _, a := range all {
		if a.Changed {
			out = append(out, a)
		}
	}
	return out
}

// removePlacement removes a placement that is no longer in Git from all clusters at once.
func (pl *placementPlanner) removePlacement(p *Placement, record *ledger.Placement) {
	p.Record = *record
	if !record.Deleted {
		p.Record.Deleted, p.Record.DeletedAt = true, pl.planner.Now
	}
	p.Record.LostRuns = nil
	p.Record.Evictions = slices.Clone(p.Record.Evictions)
	judgeAll(p, pl, placement.Judgement{Message: "Found deleting ClusterResourcePlacement targeted by eviction"})
	before := pl.bindings(p, record)
	// If the placement was deleted, the permission of a commit is recorded and applies until all objects are deleted.
	// If it was renamed, the permission depends on the content under the new key; see successorMayDelete.
	recordAllowed := pl.current.deleteAllowed && pl.successorInGit() == nil
	for _, b := range before {
		c := pl.recordedCluster(b, record)
		c.Binding.Unscheduled = true
		c.Binding.Removing = b.Removing || pl.planner.paused[b.Cluster] == "" && c.Unusual().Suspended == ""
		c.Binding.AllowDelete = b.AllowDelete && record.Deleted || recordAllowed
		if !record.Deleted || b.Unusual().RemovedBy == "" {
			pl.planner.recordRemoval(c.Binding)
		}
		p.Clusters = append(p.Clusters, c)
	}
	pl.listChanges(p, record)
	p.Forget = len(p.Clusters) == 0
	pl.planWorks(p)
}

// keepPlacement keeps the assignments of a placement for which nothing new can be decided.
func (pl *placementPlanner) keepPlacement(p *Placement, before []placement.Binding, record *ledger.Placement) {
	for _, b := range before {
		c := pl.recordedCluster(b, record)
		c.SetLatest(b.Assigned)
		p.Clusters = append(p.Clusters, c)
	}
	pl.listChanges(p, record)
	pl.planWorks(p)
}

// keepUnclear keeps a placement as it is while it is uncertain whether it was renamed.
func (pl *placementPlanner) keepUnclear(p *Placement, record *ledger.Placement, why string) {
	p.Unclear = why
	if p.Spec != nil {
		p.Pending = true
		p.warn("", why)
	}
	if record == nil {
		p.Record = ledger.Placement{Index: -1, Created: pl.planner.InForce.Commit.Time}
	} else {
		p.Record = *record
	}
	if p.Spec != nil {
		lost := pl.planner.lostRuns(p.Key, p.Record.LostRuns)
		p.RecordChanged = !slices.Equal(lost, p.Record.LostRuns)
		p.Record.LostRuns = lost
	}
	for _, b := range pl.bindings(p, record) {
		c := pl.recordedCluster(b, record)
		c.SetLatest(b.Assigned)
		c.Waits = why
		p.Clusters = append(p.Clusters, c)
		c.work = &work.Work{Placement: p.Key, Revision: b.Assigned, Keep: true, Abandon: record.Abandon, Suspended: c.Unusual().Suspended, SuspendedObjects: c.Unusual().suspendedObjects}
		if c.PreviousContent != nil && !b.Removing && !record.Abandon { // with ReportDiff it must own nothing
			c.work.Awaited = c.PreviousContent.Manifests // objects left to others
		}
	}
}
