package status

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// A clusterChange is the change of a placement's status on one cluster.
type clusterChange struct {
	*eventBuilder
	name     string
	now, was *api.PerClusterPlacementStatus // was is empty if the cluster is new
	held     *plan.OnCluster                // may be nil
	// moved says that another revision was assigned.
	moved bool
}

// clusters adds the events of each cluster. Normal progress is grouped over many clusters.
func (h *eventBuilder) clusters() {
	before := make(map[string]*api.PerClusterPlacementStatus, len(h.before.PlacementStatuses))
	for i := range h.before.PlacementStatuses {
		before[h.before.PlacementStatuses[i].ClusterName] = &h.before.PlacementStatuses[i]
	}
	var usual []Event
	for i := range h.after.PlacementStatuses {
		now := &h.after.PlacementStatuses[i]
		if now.ClusterName == "" {
			continue
		}
		s := &clusterChange{eventBuilder: h, name: now.ClusterName, now: now, was: cmp.Or(before[now.ClusterName], &api.PerClusterPlacementStatus{}), held: h.p.On(now.ClusterName)}
		delete(before, now.ClusterName)
		was := h.clusterBefore(s.name)
		s.moved = s.held != nil && (was == nil || was.Binding.Assigned.Hash != s.held.Binding.Assigned.Hash)
		usual = append(usual, s.progressEvents()...)
		s.problemEvents()
	}
	for i := range h.before.PlacementStatuses {
		if name := h.before.PlacementStatuses[i].ClusterName; name != "" && before[name] != nil {
			e := normal(api.Unscheduled, "The placement leaves the cluster")
			e.Cluster = name
			usual = append(usual, e)
		}
	}
	for _, e := range grouped(usual, sameStep) {
		h.add(e)
	}
}

// progressEvents returns the events of normal progress: selected, assigned, available.
func (s *clusterChange) progressEvents() []Event {
	var out []Event
	add := func(c *metav1.Condition) {
		e := normal(c.Reason, c.Message)
		e.Cluster = s.name
		if s.held != nil {
			e.Commit = s.held.Binding.Assigned.Commit
		}
		out = append(out, e)
	}
	if s.was.ClusterName == "" {
		add(s.condition(api.Scheduled))
	}
	for _, typ := range []string{api.RolloutStarted, api.Available, api.DiffReported} {
		if c := s.condition(typ); c != nil && c.Status == metav1.ConditionTrue && (s.moved || !isTrue(s.conditionBefore(typ))) {
			add(c)
		}
	}
	return out
}

// problemEvents adds the events about problems and about changes by others.
func (s *clusterChange) problemEvents() {
	var out []Event
	for _, typ := range []string{api.Overridden, api.WorkSynchronized} {
		if c := s.condition(typ); isFalse(c) && !isFalse(s.conditionBefore(typ)) {
			out = append(out, warning(c.Reason, c.Message))
		}
	}
	if !s.moved && isTrue(s.conditionBefore(api.Available)) {
		for _, typ := range []string{api.Applied, api.Available} {
			if c := s.condition(typ); isFalse(c) && c.Reason != api.ApplyInProgress {
				out = append(out, warning(c.Reason, c.Message))
			}
		}
	}
	if was := s.clusterBefore(s.name); s.held != nil && s.held.Failure != "" && s.held.Seen().Applied() && (was == nil || was.Failure == "" || s.moved) {
		out = append(out, warning(api.UpdateFailed, "The assigned content has failed: "+s.held.Failure))
	}
	s.add(out)
	s.add(s.failedEvents())
	s.add(s.diffEvents())
}

func (s *clusterChange) add(events []Event) {
	commit := ""
	if s.held != nil {
		commit = s.held.Binding.Assigned.Commit
	}
	s.addLimited(s.name, commit, events)
}

func (s *clusterChange) condition(typ string) *metav1.Condition {
	return meta.FindStatusCondition(s.now.Conditions, typ)
}

func (s *clusterChange) conditionBefore(typ string) *metav1.Condition {
	return meta.FindStatusCondition(s.was.Conditions, typ)
}

func isTrue(c *metav1.Condition) bool  { return c != nil && c.Status == metav1.ConditionTrue }
func isFalse(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionFalse }

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
	return s.held != nil && s.held.Seen() != nil && slices.ContainsFunc(s.held.Seen().Exceptions, func(o ledger.ObjectState) bool {
		return o.Pending && o.Applied.Reason == api.DecodingErred && sortKey(identifier(&o)) == sortKey(i)
	})
}

// diffEvents returns events about objects that differ and are not written.
func (s *clusterChange) diffEvents() []Event {
	if !s.reportsDiff() {
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
