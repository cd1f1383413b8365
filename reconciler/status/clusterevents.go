package status

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// A statusChange is what the status of a placement says of a cluster now, and what it said before.
type statusChange struct {
	now, was      api.PerClusterPlacementStatus // was is empty if the cluster was not selected
	cluster       *plan.OnCluster
	clusterBefore *plan.OnCluster // the previous plan; nil if the placement did not hold the cluster
	happened      occurrence.ClusterChange
}

func (c *statusChange) differs() bool {
	if c.was.ClusterName == "" || !slices.Equal(c.now.Conditions, c.was.Conditions) {
		return true
	}
	now, was := c.now, c.was
	now.Conditions, was.Conditions = nil, nil
	return !reflect.DeepEqual(now, was)
}

// eventsSince returns the report with which events are compared; nil if there is none. Then the ledger has the conditions from
// before a restart.
func eventsSince(b *builder) *placementEntry {
	if b.old != nil && b.old.of.Pending {
		return nil
	}
	return b.old
}

// reportsClusters reports whether there are events about clusters: the first report after a restart has none.
func reportsClusters(b *builder) bool {
	return !b.p.Pending && (eventsSince(b) != nil || b.record == nil || b.record.Transitions == nil)
}

// addEvents adds the events of the cluster at a position of the plan.
func (s *statusChange) addEvents(b *builder, at int) {
	if !reportsClusters(b) {
		return
	}
	if old := eventsSince(b); old != nil {
		if was := old.of.Position(s.now.ClusterName, at); was >= 0 {
			s.clusterBefore = old.of.Clusters[was]
		}
	}
	s.happened = stateOn(s.cluster).Since(stateOn(s.clusterBefore))
	s.addProgress(&b.progress)
	for _, events := range [][]Event{s.problemEvents(b), s.failedEvents(), s.diffEvents(b)} {
		b.problems = append(b.problems, event.Limited(s.now.ClusterName, s.cluster.Binding.Assigned.Commit, events)...)
	}
}

// stateOn returns what is compared of a placement on a cluster; c is nil if it does not hold the cluster.
func stateOn(c *plan.OnCluster) occurrence.ClusterState {
	if c == nil {
		return occurrence.ClusterState{}
	}
	return occurrence.ClusterState{Binding: c.Binding, Complete: c.Entry.CompleteOf(c.Binding)}
}

// clusterEvents adds the events of each cluster. Normal progress is grouped over many clusters.
func (h *eventBuilder) clusterEvents() {
	for _, e := range h.builder.problems {
		h.add(e)
	}
	for _, name := range h.clustersLeft() {
		e := event.Normal(api.Unscheduled, "The placement leaves the cluster")
		e.Cluster = name
		h.builder.progress.Add(e, e.Reason)
	}
	for _, e := range h.builder.progress.All() {
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

// addProgress adds the events of normal progress: selected, assigned, available. Besides, a condition may become true by a commit:
// one that returns to the content that the cluster has makes it available without a report.
func (s *statusChange) addProgress(to *event.Grouping) {
	add := func(c *metav1.Condition) {
		e := event.Normal(c.Reason, c.Message)
		e.Cluster, e.Commit = s.now.ClusterName, s.cluster.Binding.Assigned.Commit
		to.Add(e, e.Reason)
	}
	if s.was.ClusterName == "" {
		add(meta.FindStatusCondition(s.now.Conditions, api.Scheduled))
	}
	for _, of := range []struct {
		typ      string
		happened bool
	}{{api.RolloutStarted, s.happened.Assigned}, {api.Available, s.happened.Available}, {api.DiffReported, s.happened.Applied}} {
		if meta.IsStatusConditionTrue(s.now.Conditions, of.typ) && (of.happened || !meta.IsStatusConditionTrue(s.was.Conditions, of.typ)) {
			add(meta.FindStatusCondition(s.now.Conditions, of.typ))
		}
	}
}

// problemEvents returns the events about conditions that became false, and about failed updates.
func (s *statusChange) problemEvents(b *builder) []Event {
	var out []Event
	add := func(types ...string) {
		for _, typ := range types {
			c := meta.FindStatusCondition(s.now.Conditions, typ)
			if c != nil && c.Status == metav1.ConditionFalse && c.Reason != api.ApplyInProgress && !meta.IsStatusConditionFalse(s.was.Conditions, typ) {
				out = append(out, event.Warning(c.Reason, c.Message))
			}
		}
	}
	add(api.Overridden, api.WorkSynchronized)
	if !s.happened.Assigned && meta.IsStatusConditionTrue(s.was.Conditions, api.Available) {
		add(api.Applied, api.Available)
	}
	if s.cluster.Unusual().Failure != "" && s.cluster.LastKnown().Applied() && (s.clusterBefore == nil || s.clusterBefore.Unusual().Failure == "" || s.happened.Assigned) {
		failed := event.Warning(api.UpdateFailed, "The assigned content has failed: "+s.cluster.Unusual().Failure)
		if !s.cluster.TimedOut || !s.recordedTimeout(b, failed) {
			out = append(out, failed)
		}
	}
	return out
}

// recordedTimeout reports whether the ledger has the event of an availability timeout since the content is unavailable on the cluster. After
// a restart, and while the member reconnects, the content does not count as failed until the member reports that it is still unavailable.
func (s *statusChange) recordedTimeout(b *builder, failed Event) bool {
	key, cluster, since := b.p.Key, s.now.ClusterName, s.cluster.Entry.Unusual().UnavailableSince
	if seen := b.in.Ledger.Cluster(cluster); seen != nil && seen.Since.After(since) { // the timeout has begun again
		since = seen.Since
	}
	return slices.ContainsFunc(b.in.Ledger.Events(), func(e Event) bool {
		return e.Reason == failed.Reason && e.Cluster == cluster && e.Message == failed.Message && !e.Last.Before(since) &&
			e.Kind == key.Kind() && e.Namespace == key.Namespace && e.Name == key.Name
	})
}

// failedEvents returns events about objects that could not be applied, for a new reason. There
// is none for an object that is not available yet or whose definition is about to be
// established.
func (s *statusChange) failedEvents() []Event {
	var out []Event
	for _, f := range added(s.was.FailedPlacements, s.now.FailedPlacements, func(f api.FailedResourcePlacement) string {
		return f.ResourceIdentifier.SortKey() + " " + f.Condition.Reason
	}) {
		if c := f.Condition; c.Reason != api.ManifestNotAvailableYet && !s.awaitsDefinition(f.ResourceIdentifier) {
			out = append(out, event.Warning(c.Reason, f.ID().String()+": "+c.Message))
		}
	}
	return out
}

// awaitsDefinition reports whether an object is not applied only because its
// CustomResourceDefinition, which is placed on the cluster too, is not established yet.
func (s *statusChange) awaitsDefinition(i api.ResourceIdentifier) bool {
	seen := s.cluster.LastKnown()
	return seen != nil && slices.ContainsFunc(seen.Exceptions, func(o protocol.ObjectState) bool {
		return o.Pending && o.Applied.Reason == api.DecodingErred && o.Identifier().SortKey() == i.SortKey()
	})
}

// diffEvents returns events about objects that differ and are not written.
func (s *statusChange) diffEvents(b *builder) []Event {
	if !b.reportsDiff() {
		return nil
	}
	var out []Event
	for _, d := range added(s.was.DiffedPlacements, s.now.DiffedPlacements, func(d api.DiffedResourcePlacement) string { return d.ResourceIdentifier.SortKey() }) {
		out = append(out, event.Normal(api.FoundDiff, d.ID().String()+" differs: "+event.Few(d.ObservedDiffs, func(d api.PatchDetail) string { return d.Path })))
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
