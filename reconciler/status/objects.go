package status

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// objects lists the failed, drifted and differing objects.
func (c clusterBuilder) objects(s *api.PerClusterPlacementStatus) {
	seen := c.Seen()
	if seen == nil || !seen.Done || !c.Binding.HasRevision() || !c.UpToDate() && !c.external() || c.Err != nil {
		return
	}
	for _, refused := range c.Content.Refused {
		s.FailedPlacements = append(s.FailedPlacements, c.neverApplied(refused.Manifest, refused.Reason, refused.Message))
	}
	for _, y := range c.Yielded {
		s.FailedPlacements = append(s.FailedPlacements, c.neverApplied(y.Manifest, api.FailedToTakeOver, yieldedMessage(y)))
	}
	for i := range seen.Exceptions {
		c.object(&seen.Exceptions[i], seen, s)
	}
	sortBy(s.FailedPlacements, func(f api.FailedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
	sortBy(s.DriftedPlacements, func(f api.DriftedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
	sortBy(s.DiffedPlacements, func(f api.DiffedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
}

// neverApplied returns an object that was not sent to the member.
func (c clusterBuilder) neverApplied(m *work.Manifest, reason, message string) api.FailedResourcePlacement {
	return api.FailedResourcePlacement{ResourceIdentifier: m.Identifier(), Condition: metav1.Condition{
		Type: api.Applied, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(c.Binding.AssignedAt),
	}}
}

func yieldedMessage(y plan.Yielded) string {
	other := y.To.String()
	if y.Origin.Path != "" {
		other += " (" + y.Origin.String() + ")"
	}
	text := "Failed to apply the manifest (error: failed to take over a pre-existing object: " +
		"the object is already owned by another Fleet AppliedWork object: the placement " + other
	if y.Passing {
		return text + " has it on this cluster until its rollout gets here)"
	}
	return text + " selects it as well and has it on this cluster)"
}

// object adds an object that is not just applied and available.
func (c clusterBuilder) object(o *ledger.ObjectState, seen *ledger.WorkSeen, s *api.PerClusterPlacementStatus) {
	id := identifier(o)
	if !c.reportsDiff() && !(o.Applied.OK && o.Available.OK) {
		s.FailedPlacements = append(s.FailedPlacements, api.FailedResourcePlacement{ResourceIdentifier: id, Condition: failure(o)})
	}
	switch {
	case len(o.Diffs) == 0:
	case c.reportsDiff() && !seen.Applied():
		// differences are reported once all of them are known
	case o.Drift && !c.reportsDiff():
		s.DriftedPlacements = append(s.DriftedPlacements, api.DriftedResourcePlacement{
			ResourceIdentifier: id, ObservationTime: metav1.NewTime(o.LastSeen), TargetClusterObservedGeneration: o.Generation,
			FirstDriftedObservedTime: metav1.NewTime(o.FirstSeen), ObservedDrifts: o.PatchDetails(),
		})
	default:
		d := api.DiffedResourcePlacement{
			ResourceIdentifier: id, ObservationTime: metav1.NewTime(o.LastSeen),
			FirstDiffedObservedTime: metav1.NewTime(o.FirstSeen), ObservedDiffs: o.PatchDetails(),
		}
		if o.Generation > 0 {
			d.TargetClusterObservedGeneration = &o.Generation
		}
		s.DiffedPlacements = append(s.DiffedPlacements, d)
	}
}

// sortBy sorts a list as KubeFleet does before it truncates one.
func sortBy[T any](list []T, id func(T) api.ResourceIdentifier) {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(sortKey(id(a)), sortKey(id(b))) })
}

// sortKey is the sort key of lists of objects, unique within a placement.
func sortKey(i api.ResourceIdentifier) string {
	parts := []string{i.Group, i.Version, i.Kind, i.Namespace, i.Name}
	if e := i.Envelope; e != nil {
		parts = append(parts, string(e.Type), e.Namespace, e.Name)
	}
	return strings.Join(parts, "/")
}

func identifier(o *ledger.ObjectState) api.ResourceIdentifier {
	return api.ResourceIdentifier{
		Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind, Namespace: o.ID.Namespace, Name: o.ID.Name, Envelope: o.Envelope,
	}
}

// failure is the condition of a failed object.
func failure(o *ledger.ObjectState) metav1.Condition {
	typ, v, what := api.Applied, o.Applied, "applied"
	if o.Applied.OK {
		typ, v, what = api.Available, o.Available, "available"
	}
	return metav1.Condition{
		Type: typ, Status: metav1.ConditionFalse, Reason: v.Reason,
		Message:            cmp.Or(v.Message, "The manifest is not "+what+", and the member did not say why"),
		ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(v.Since),
	}
}
