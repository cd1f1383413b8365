package overview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// ConditionStatus returns the status of a condition; a dash if there is no such condition.
func ConditionStatus(cs []metav1.Condition, typ string) string {
	for _, c := range cs {
		if c.Type == typ {
			return string(c.Status)
		}
	}
	return "-"
}

// FirstProblem returns the message of the first condition that is not true, with the name of its
// cluster; empty if all are true.
func FirstProblem(s api.PlacementStatus) string {
	for _, c := range s.PlacementStatuses {
		for _, cond := range c.Conditions {
			if cond.Status != metav1.ConditionTrue {
				text := cond.Message
				if len(c.FailedPlacements) > 0 {
					f := c.FailedPlacements[0]
					text = f.ID().String() + ": " + Cause(f.Condition.Message)
				}
				if c.ClusterName == "" {
					return text
				}
				return c.ClusterName + ": " + text
			}
		}
	}
	for _, cond := range s.Conditions {
		if cond.Status != metav1.ConditionTrue {
			return cond.Message
		}
	}
	return ""
}
