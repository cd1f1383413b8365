package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// AddObjects adds the failed, drifted and differing objects to a status.
func (c Cluster) AddObjects(s *api.PerClusterPlacementStatus) {
	if !c.reportsObjects() {
		return
	}
	for _, f := range c.failed() {
		s.FailedPlacements = append(s.FailedPlacements, f.FailedResourcePlacement)
	}
	seen := c.LastKnown()
	for i := range seen.Exceptions {
		c.difference(&seen.Exceptions[i], seen, s)
	}
	SortBy(s.DriftedPlacements, func(f api.DriftedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
	SortBy(s.DiffedPlacements, func(f api.DiffedResourcePlacement) api.ResourceIdentifier { return f.ResourceIdentifier })
}

func (c Cluster) reportsDiff() bool { return c.p.Spec.Spec.Strategy.ReportsDiff() }

// reportsObjects reports whether the objects of the cluster are those of the content that the status is about.
func (c Cluster) reportsObjects() bool {
	seen := c.LastKnown()
	return seen != nil && seen.Done && c.Binding.HasRevision() && (c.UpToDate() || External(c.p)) && c.Err == nil
}

// A failedObject is an object that is not applied or not available.
type failedObject struct {
	api.FailedResourcePlacement
	// cause is what its message says beside KubeFleet's words, and pod the pod that it names as an example.
	cause, pod string
}

// failed returns the objects that are not applied or not available, in the order of the status.
func (c Cluster) failed() []failedObject {
	var all []failedObject
	for _, refused := range c.Content.Refused {
		all = append(all, c.neverApplied(refused.Manifest, refused.Reason, api.SaysNotApplied, refused.Cause))
	}
	for _, y := range c.Unusual().Yielded {
		all = append(all, c.neverApplied(y.Manifest, api.FailedToTakeOver, api.SaysOwned, yieldedCause(y)))
	}
	seen := c.LastKnown()
	for i := range seen.Exceptions {
		if o := &seen.Exceptions[i]; !c.reportsDiff() && !(o.Applied.OK && o.Available.OK) {
			all = append(all, failure(o))
		}
	}
	SortBy(all, func(f failedObject) api.ResourceIdentifier { return f.ResourceIdentifier })
	return all
}

// neverApplied returns an object that was not sent to the member.
func (c Cluster) neverApplied(m *work.Manifest, reason string, sentence api.Sentence, cause string) failedObject {
	return failedObject{api.FailedResourcePlacement{ResourceIdentifier: m.Identifier(), Condition: metav1.Condition{
		Type: api.Applied, Status: metav1.ConditionFalse, Reason: reason, Message: sentence.Message(cause),
		LastTransitionTime: metav1.NewTime(c.Binding.AssignedAt),
	}}, cause, ""}
}

func yieldedCause(y plan.Yielded) string {
	other := y.To.String()
	if y.Origin.Path != "" {
		other += " (" + y.Origin.String() + ")"
	}
	if y.Passing {
		return "the placement " + other + " has it on this cluster until its rollout gets here"
	}
	return "the placement " + other + " selects it as well and has it on this cluster"
}

// difference adds an object that differs from its manifest.
func (c Cluster) difference(o *protocol.ObjectState, seen *protocol.WorkState, s *api.PerClusterPlacementStatus) {
	id := o.Identifier()
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

// SortBy sorts a list as KubeFleet does before it truncates one.
func SortBy[T any](list []T, id func(T) api.ResourceIdentifier) {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(id(a).SortKey(), id(b).SortKey()) })
}

// failure describes an object that is not applied or not available.
func failure(o *protocol.ObjectState) failedObject {
	typ, v, what := api.Applied, o.Applied, "applied"
	if o.Applied.OK {
		typ, v, what = api.Available, o.Available, "available"
	}
	if v.Message() == "" {
		v.Cause = "The manifest is not " + what + ", and the member did not say why"
	}
	return failedObject{api.FailedResourcePlacement{ResourceIdentifier: o.Identifier(), Condition: metav1.Condition{
		Type: typ, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message(),
		ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(v.Since),
	}}, cmp.Or(v.Cause, v.Message()), o.Pod}
}

// Cause names the first object that is not applied, or else the first that is not available, and says why.
func (c Cluster) Cause() string {
	if !c.reportsObjects() {
		return ""
	}
	return causeOf(c.failed())
}

// causeOf returns the cause of objects that are not applied or not available. Of several that are not applied it has the
// number, and names one that waits for a hook only if all do: usually the hook itself is another one of them. Without the name
// of a pod, which is another one on each cluster, equal causes can be counted together.
func causeOf(all []failedObject) string {
	var first *failedObject
	refused, firstRank := 0, 0
	for i := range all {
		f := &all[i]
		rank := 1
		if f.Condition.Type == api.Applied {
			refused++
			rank = 3
			if f.Condition.Reason == api.HookPending {
				rank = 2
			}
		}
		if rank > firstRank {
			first, firstRank = f, rank
		}
	}
	if first == nil {
		return ""
	}
	text := first.ID().String() + ": " + withoutPod(first.cause, first.pod)
	if refused > 1 {
		text += fmt.Sprintf(" (and %d more)", refused-1)
	}
	return text
}

// FailureText is why the assigned content of a cluster has failed, without names of pods.
func FailureText(text string, seen *protocol.WorkState) string {
	for i := range seen.Exceptions {
		text = withoutPod(text, seen.Exceptions[i].Pod)
	}
	return text
}

// withoutPod replaces the name of a pod, which a text has as an example; empty if it has none.
func withoutPod(text, pod string) string {
	if pod == "" {
		return text
	}
	return strings.Replace(text, "pod "+pod, "a pod", 1)
}
