package status

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A clusterChange is the change of a placement's status on one cluster.
type clusterChange struct {
	events      *eventBuilder
	now, was    *api.PerClusterPlacementStatus // was is empty if the cluster was not selected
	held        *plan.OnCluster                // may be nil
	heldBefore  *plan.OnCluster                // the previous plan; nil if the placement did not hold the cluster
	newRevision bool                           // another revision was assigned
}

// clusterEvents adds the events of each cluster. Normal progress is grouped over many clusters.
func (h *eventBuilder) clusterEvents() {
	var usual []Event
	for i := range h.builder.changes {
		now := &h.builder.changes[i].now
		name := now.ClusterName
		s := &clusterChange{events: h, now: now, was: cmp.Or(h.builder.changes[i].was, &api.PerClusterPlacementStatus{}), held: h.builder.p.On(name), heldBefore: h.clusterBefore(name)}
		s.newRevision = s.held != nil && (s.heldBefore == nil || s.heldBefore.Binding.Assigned.Hash != s.held.Binding.Assigned.Hash)
		usual = append(usual, s.progressEvents()...)
		for _, events := range [][]Event{s.problemEvents(), s.failedEvents(), s.diffEvents()} {
			h.addLimited(name, h.commitOn(name), events)
		}
	}
	for _, name := range h.clustersLeft() {
		e := normal(api.Unscheduled, "The placement leaves the cluster")
		e.Cluster = name
		usual = append(usual, e)
	}
	for _, e := range grouped(usual, func(a, b Event) bool { return a.Reason == b.Reason && a.Commit == b.Commit }) {
		h.add(e)
	}
}

// clustersLeft returns the clusters that are no longer selected.
func (h *eventBuilder) clustersLeft() (out []string) {
	if h.old == nil || h.old.of.Spec == nil || h.builder.stay {
		return nil
	}
	now := lineBuilder{h.builder}.lines()
	for i, d := range h.old.reader().decisions() {
		was := h.old.of.Position(d.Cluster, i)
		if !d.Selected || was < 0 || !h.old.lines.At(was).selected {
			continue
		}
		if at := h.builder.p.Position(d.Cluster, was); at < 0 || !now.At(at).selected {
			out = append(out, d.Cluster)
		}
	}
	return out
}

// progressEvents returns the events of normal progress: selected, assigned, available.
func (s *clusterChange) progressEvents() []Event {
	var out []Event
	add := func(c *metav1.Condition) {
		e := normal(c.Reason, c.Message)
		e.Cluster, e.Commit = s.now.ClusterName, s.events.commitOn(s.now.ClusterName)
		out = append(out, e)
	}
	if s.was.ClusterName == "" {
		add(meta.FindStatusCondition(s.now.Conditions, api.Scheduled))
	}
	for _, typ := range []string{api.RolloutStarted, api.Available, api.DiffReported} {
		if meta.IsStatusConditionTrue(s.now.Conditions, typ) && (s.newRevision || !meta.IsStatusConditionTrue(s.was.Conditions, typ)) {
			add(meta.FindStatusCondition(s.now.Conditions, typ))
		}
	}
	return out
}

// problemEvents returns the events about conditions that became false, and about failed updates.
func (s *clusterChange) problemEvents() []Event {
	var out []Event
	add := func(types ...string) {
		for _, typ := range types {
			c := meta.FindStatusCondition(s.now.Conditions, typ)
			if c != nil && c.Status == metav1.ConditionFalse && c.Reason != api.ApplyInProgress && !meta.IsStatusConditionFalse(s.was.Conditions, typ) {
				out = append(out, warning(c.Reason, c.Message))
			}
		}
	}
	add(api.Overridden, api.WorkSynchronized)
	if !s.newRevision && meta.IsStatusConditionTrue(s.was.Conditions, api.Available) {
		add(api.Applied, api.Available)
	}
	if s.held != nil && s.held.Unusual().Failure != "" && s.held.Seen().Applied() && (s.heldBefore == nil || s.heldBefore.Unusual().Failure == "" || s.newRevision) {
		out = append(out, warning(api.UpdateFailed, "The assigned content has failed: "+s.held.Unusual().Failure))
	}
	return out
}

// failedEvents returns events about objects that could not be applied, for a new reason. There
// is none for an object that is not available yet or whose definition is about to be
// established.
func (s *clusterChange) failedEvents() []Event {
	var out []Event
	for _, f := range added(s.was.FailedPlacements, s.now.FailedPlacements, func(f api.FailedResourcePlacement) string {
		return sortKey(f.ResourceIdentifier) + " " + f.Condition.Reason
	}) {
		if c := f.Condition; c.Reason != api.ManifestNotAvailableYet && !s.awaitsDefinition(f.ResourceIdentifier) {
			out = append(out, warning(c.Reason, f.ID().String()+": "+c.Message))
		}
	}
	return out
}

// awaitsDefinition reports whether an object is not applied only because its
// CustomResourceDefinition, which is placed on the cluster too, is not established yet.
func (s *clusterChange) awaitsDefinition(i api.ResourceIdentifier) bool {
	return s.held != nil && s.held.Seen() != nil && slices.ContainsFunc(s.held.Seen().Exceptions, func(o protocol.ObjectState) bool {
		return o.Pending && o.Applied.Reason == api.DecodingErred && sortKey(identifier(&o)) == sortKey(i)
	})
}

// diffEvents returns events about objects that differ and are not written.
func (s *clusterChange) diffEvents() []Event {
	if !s.events.builder.reportsDiff() {
		return nil
	}
	var out []Event
	for _, d := range added(s.was.DiffedPlacements, s.now.DiffedPlacements, func(d api.DiffedResourcePlacement) string { return sortKey(d.ResourceIdentifier) }) {
		out = append(out, normal(api.FoundDiff, d.ID().String()+" differs: "+few(d.ObservedDiffs, func(d api.PatchDetail) string { return d.Path })))
	}
	return out
}

// added returns the items whose keys no item before has.
func added[T any, K comparable](before, now []T, key func(T) K) []T {
	known := make(map[K]bool, len(before))
	for _, b := range before {
		known[key(b)] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(n T) bool { return known[key(n)] })
}
