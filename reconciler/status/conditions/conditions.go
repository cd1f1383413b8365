// Package conditions says in KubeFleet's terms how a placement is: all in all, as Scheduled and Aggregate, and on each cluster, as a
// Cluster. All follows from the plan; when the conditions last changed is not its concern.
package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Value is a condition without its type and times.
type Value struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// True returns the value of a condition that is true.
func True(reason, message string) Value { return Value{metav1.ConditionTrue, reason, message} }

// False returns the value of a condition that is false.
func False(reason, message string) Value { return Value{metav1.ConditionFalse, reason, message} }

// Unknown returns the value of a condition that is unknown.
func Unknown(reason, message string) Value { return Value{metav1.ConditionUnknown, reason, message} }

// Prefix is the prefix of a placement's condition types.
func Prefix(namespace string) string {
	if namespace == "" {
		return api.PlacementPrefix
	}
	return api.ResourcePlacementPrefix
}

// Expected are the conditions after Scheduled, in the order of progress.
func Expected(spec *api.PlacementSpec) []string {
	if spec.Strategy.ReportsDiff() {
		return expectedWithDiff
	}
	return expectedWithout
}

var (
	expectedWithDiff = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.DiffReported}
	expectedWithout  = []string{api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available}
)
