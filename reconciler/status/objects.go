package status

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// envelopeWork is the name of the unit that an envelope makes.
func envelopeWork(main string, e *api.EnvelopeIdentifier) string {
	sum := sha256.Sum256([]byte(string(e.Type) + "/" + e.Namespace + "/" + e.Name))
	return main + "-envelope-" + hex.EncodeToString(sum[:8])
}

// objects lists what failed, drifted and differs.
func (b *builder) objects(c *plan.OnCluster, s *api.PerClusterPlacementStatus) {
	seen := c.Seen()
	if seen == nil || !seen.Done || !c.UpToDate() || c.Err != nil {
		return
	}
	for _, refused := range c.Content.Refused {
		id := refused.Identifier()
		s.FailedPlacements = append(s.FailedPlacements, api.FailedResourcePlacement{ResourceIdentifier: id, Condition: metav1.Condition{
			Type: api.Applied, Status: metav1.ConditionFalse, Reason: refused.Reason, Message: refused.Message,
			LastTransitionTime: metav1.NewTime(c.Binding.AssignedAt),
		}})
	}
	for i := range seen.Exceptions {
		o := &seen.Exceptions[i]
		id := identifier(o)
		if !b.reportsDiff() && !(o.Applied.OK && o.Available.OK) {
			s.FailedPlacements = append(s.FailedPlacements, api.FailedResourcePlacement{ResourceIdentifier: id, Condition: b.failure(o)})
		}
		if len(o.Diffs) == 0 {
			continue
		}
		if o.Drift && !b.reportsDiff() {
			s.DriftedPlacements = append(s.DriftedPlacements, api.DriftedResourcePlacement{
				ResourceIdentifier: id, ObservationTime: metav1.NewTime(o.LastSeen), TargetClusterObservedGeneration: o.Generation,
				FirstDriftedObservedTime: metav1.NewTime(o.FirstSeen), ObservedDrifts: o.Diffs,
			})
			continue
		}
		d := api.DiffedResourcePlacement{
			ResourceIdentifier: id, ObservationTime: metav1.NewTime(o.LastSeen),
			FirstDiffedObservedTime: metav1.NewTime(o.FirstSeen), ObservedDiffs: o.Diffs,
		}
		if o.Generation > 0 {
			d.TargetClusterObservedGeneration = &o.Generation
		}
		s.DiffedPlacements = append(s.DiffedPlacements, d)
	}
	sortBy(s.FailedPlacements, func(f api.FailedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
	sortBy(s.DriftedPlacements, func(f api.DriftedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
	sortBy(s.DiffedPlacements, func(f api.DiffedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
}

// sortBy orders a list as KubeFleet does before it cuts one.
func sortBy[T any](list []T, id func(T) api.ResourceIdentifier) {
	key := func(t T) string {
		i := id(t)
		parts := []string{i.Group, i.Version, i.Kind, i.Namespace, i.Name}
		if e := i.Envelope; e != nil {
			parts = append(parts, string(e.Type), e.Namespace, e.Name)
		}
		return strings.Join(parts, "/")
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
}

func identifier(o *ledger.ObjectState) api.ResourceIdentifier {
	return api.ResourceIdentifier{
		Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind, Namespace: o.ID.Namespace, Name: o.ID.Name, Envelope: o.Envelope,
	}
}

// failure is the condition that makes an object a failed one.
func (b *builder) failure(o *ledger.ObjectState) metav1.Condition {
	typ, v := api.Applied, o.Applied
	if o.Applied.OK {
		typ, v = api.Available, o.Available
	}
	since := v.Since
	if since.IsZero() {
		since = b.Now
	}
	return metav1.Condition{
		Type: typ, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message,
		ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(since),
	}
}
