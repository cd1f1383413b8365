// Package scenario plays stories of a fleet in virtual time: the real loop,
// with members and a repository that are made up.
package scenario

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Sound holds a report to what must be true of every report: whatever is not
// well says why, and since when.
func Sound(t testing.TB, r *status.Report) {
	t.Helper()
	for _, p := range r.Placements {
		soundStatus(t, p.Name, &p.Status)
	}
	for _, p := range r.ResourcePlacements {
		soundStatus(t, p.Namespace+"/"+p.Name, &p.Status)
	}
	for _, c := range r.Clusters {
		sound(t, c.Name, c.Status.Conditions...)
		for _, a := range c.Status.AgentStatus {
			sound(t, c.Name+" agent", a.Conditions...)
		}
	}
}

func soundStatus(t testing.TB, name string, s *api.PlacementStatus) {
	t.Helper()
	sound(t, name, s.Conditions...)
	for _, c := range s.PlacementStatuses {
		on := fmt.Sprintf("%s on %q", name, c.ClusterName)
		sound(t, on, c.Conditions...)
		for _, f := range c.FailedPlacements {
			sound(t, on+": "+f.Kind+" "+f.Name, f.Condition)
		}
	}
}

func sound(t testing.TB, of string, conditions ...metav1.Condition) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range conditions {
		switch {
		case seen[c.Type]:
			t.Errorf("%s: condition %s occurs twice", of, c.Type)
		case c.Status != metav1.ConditionTrue && c.Message == "":
			t.Errorf("%s: %s is %s and does not say why", of, c.Type, c.Status)
		case c.Reason == "":
			t.Errorf("%s: %s is %s without a reason", of, c.Type, c.Status)
		case c.LastTransitionTime.IsZero():
			t.Errorf("%s: %s is %s since nobody knows when", of, c.Type, c.Status)
		}
		seen[c.Type] = true
	}
}
