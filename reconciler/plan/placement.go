package plan

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/fulfilment"
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

// listAbsent lists the clusters that the policy asks for and that cannot be chosen.
func (pl *placementPlanner) listAbsent(p *Placement) {
	p.NoMembers = len(pl.planner.memo.members.List) == 0
	for _, a := range p.Schedule.Absent {
		usability := fulfilment.Unanswered
		if pl.planner.Ledger.Refusal(a.Cluster) != "" || pl.planner.Ledger.Cluster(a.Cluster).Denied() != "" {
			usability = fulfilment.Refused
		}
		p.Absent = append(p.Absent, Absence{a, usability})
	}
}

// awaitNamespace lists the clusters that PickAll will choose, since another placement is about to create the namespace there.
func (pl *placementPlanner) awaitNamespace(p *Placement) (clusters []string) {
	for _, name := range p.Schedule.WithoutNamespace {
		for _, r := range pl.planner.results {
			o := r.placement
			creates := func(object *api.Object) bool {
				return object.ID == api.ID{Kind: "Namespace", Name: p.Key.Namespace}
			}
			if c := o.On(name); c != nil && selected(c) && slices.ContainsFunc(o.Selection.Objects, creates) {
				clusters = append(clusters, name)
				break
			}
		}
	}
	return clusters
}

// schedule calls the scheduler with the policy of the request, and reports the number of clusters that the placement's
// own policy requests. If the input is the same, it returns the previous result: reports of members about content do
// not affect scheduling, nor does what the rollout records in bindings.
func (pl *placementPlanner) schedule(p *Placement) placement.Outcome {
	if old := pl.planner.memo.results[p.Key]; old != nil && old.placement.Request != nil && old.scheduling() == pl.current.scheduling() {
		was := old.placement.Request
		switch out := old.placement.Schedule; {
		case was.Policy != p.Request.Policy, !slices.Equal(old.placement.evicting, p.evicting):
		case !old.placement.inClusters && slices.EqualFunc(was.Bindings, p.Request.Bindings, placement.Binding.Equal):
			return out
		case old.placement.hasChosen(p.Request.Bindings): // its own result gives the same result
			out.Bindings = p.Request.Bindings
			return out
		}
	}
	out := placement.Schedule(*p.Request)
	if slices.EqualFunc(out.Bindings, p.Request.Bindings, placement.Binding.Equal) {
		out.Bindings = p.Request.Bindings // use the same memory for two equal lists
	} else {
		for i := range out.Bindings {
			pl.planner.memo.texts.Share(&out.Bindings[i].Reason)
		}
	}
	if p.Unanswered > 0 { // the policy of the request is reduced
		out.Wanted, out.Fulfilled = int(*p.Spec.Spec.Policy.NumberOfClusters), false
	}
	if pl.planner.ShortDecisions {
		out.Decisions = shortDecisions(out)
	}
	out.Decisions = pl.planner.memo.sharedDecisions(out.Decisions)
	return out
}

// maxSharedDecisions limits how many lists of decisions another one is compared with.
const maxSharedDecisions = 4

// sharedDecisions returns the equal decisions of another placement if there are any, since many placements select the same clusters.
// Otherwise the decisions share the texts of their reasons with others.
func (m *Memo) sharedDecisions(all []placement.Decision) []placement.Decision {
	for _, earlier := range m.decisions {
		if slices.EqualFunc(earlier, all, sameDecision) {
			return earlier
		}
	}
	for i := range all {
		m.texts.Share(&all[i].Reason)
	}
	m.decisions = append(m.decisions, all)
	m.decisions = m.decisions[max(0, len(m.decisions)-maxSharedDecisions):]
	return all
}

func sameDecision(a, b placement.Decision) bool {
	score := a.Score.Equal(b.Score)
	a.Score, b.Score = nil, nil
	return score && a == b
}

// shortDecisions returns the decisions on selected clusters, which come first, and one more for each missing cluster.
func shortDecisions(o placement.Outcome) []placement.Decision {
	selected := slices.IndexFunc(o.Decisions, func(d placement.Decision) bool { return !d.Selected })
	if selected < 0 {
		return o.Decisions
	}
	return slices.Clone(o.Decisions[:min(len(o.Decisions), selected+max(0, o.Wanted-o.Found))])
}

func (p *Placement) warn(field string, messages ...string) {
	for _, m := range messages {
		p.Warnings = append(p.Warnings, problem.Problem{Origin: p.Spec.Origin, Field: field, Severity: problem.Warning, Message: m})
	}
}

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

// notRemoving returns the bindings that are not being removed; the list itself if that is all of them.
func notRemoving(bs []placement.Binding) []placement.Binding {
	removing := func(b placement.Binding) bool { return b.Removing }
	if !slices.ContainsFunc(bs, removing) {
		return bs
	}
	return slices.DeleteFunc(slices.Clone(bs), removing)
}

// keepRebuilt assigns bindings that were rebuilt from inventories after the ledger was lost to the current policy: the
// placement keeps those clusters without scheduling them again. If there are more than wanted, those with the larger
// names stay, as with equal scores.
func keepRebuilt(policy *api.PlacementPolicy, bs []placement.Binding) []placement.Binding {
	room := len(bs)
	switch {
	case policy == nil:
	case policy.NamesClusters():
		return bs
	case policy.NumberOfClusters != nil:
		room = int(*policy.NumberOfClusters)
	}
	rebuilt := func(b placement.Binding) bool { return b.Policy == "" && !b.Unscheduled }
	for _, b := range bs {
		if !b.Unscheduled && !rebuilt(b) {
			room--
		}
	}
	for i := range slices.Backward(bs) {
		if rebuilt(bs[i]) && room > 0 {
			bs[i].Policy = placement.PolicyHash(policy)
			room--
		}
	}
	return bs
}

// clustersOfOthers returns the clusters of the placements that an affinity names: as planned now, or, for mutual
// affinities, as recorded in the ledger.
func (pl *planner) clustersOfOthers(spec *hub.Placement) map[string][]string {
	names := placement.ReferencedPlacements(spec.Spec.Policy)
	if len(names) == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, name := range names {
		key := api.PlacementKey{Namespace: spec.Key.Namespace, Name: name}
		if pl.memo.spec(key) == nil {
			continue
		}
		if r := pl.results[key]; r != nil && r.placement.Request != nil {
			out[name] = keptClusters(r.placement.bindings())
		} else if record := pl.Ledger.Placement(key); record != nil {
			out[name] = keptClusters(record.Bindings())
		} else {
			out[name] = []string{}
		}
	}
	return out
}

func keptClusters(bs []placement.Binding) []string {
	out := []string{}
	for _, b := range bs {
		if !b.Unscheduled && !b.Removing {
			out = append(out, b.Cluster)
		}
	}
	return out
}

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

// sameChoice reports whether two bindings are equal for the scheduler, which reads nothing of what the rollout records.
func sameChoice(a, b placement.Binding) bool {
	return a.Cluster == b.Cluster && a.Policy == b.Policy && a.Reason == b.Reason && a.Order == b.Order && a.Unscheduled == b.Unscheduled && a.Score.Equal(b.Score)
}

// isRemoved reports whether no object of the placement is left on a cluster; e may be nil.
func isRemoved(e *ledger.Entry) bool { return e != nil && e.Removed() }

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
