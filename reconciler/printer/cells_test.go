package printer

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The message of a placement is that of the first cluster with a condition that is not true, or else
// its own first one.
func TestMessageOfAPlacement(t *testing.T) {
	with := func(typ string, status metav1.ConditionStatus, message string) metav1.Condition {
		c := condition(typ, status, 1)
		c.Message = message
		return c
	}
	fine := with(api.Applied, metav1.ConditionTrue, "fine")
	for name, test := range map[string]struct {
		own      []metav1.Condition
		clusters []api.PerClusterPlacementStatus
		want     string
	}{
		"all is true":       {[]metav1.Condition{fine}, []api.PerClusterPlacementStatus{{ClusterName: "east", Conditions: []metav1.Condition{fine}}}, ""},
		"of a cluster":      {[]metav1.Condition{with(api.Scheduled, "False", "own")}, []api.PerClusterPlacementStatus{{ClusterName: "east", Conditions: []metav1.Condition{fine, with(api.Available, "Unknown", "wait")}}}, "east: wait"},
		"the first cluster": {nil, []api.PerClusterPlacementStatus{{ClusterName: "a", Conditions: []metav1.Condition{fine}}, {ClusterName: "b", Conditions: []metav1.Condition{with(api.Applied, "False", "b fails")}}, {ClusterName: "c", Conditions: []metav1.Condition{with(api.Applied, "False", "c fails")}}}, "b: b fails"},
		"a missing cluster": {nil, []api.PerClusterPlacementStatus{{Conditions: []metav1.Condition{with(api.Scheduled, "False", "tainted")}}}, "tainted"},
		"its own":           {[]metav1.Condition{fine, with(api.Scheduled, "False", "own")}, nil, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &api.ClusterResourcePlacement{Status: api.PlacementStatus{Conditions: test.own, PlacementStatuses: test.clusters}}
			if got := firstProblem(Row{Value: p}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// The numbers of clusters count the selected ones, and name the missing ones only if there are any.
func TestClusterCounts(t *testing.T) {
	statuses := func(applied, others, missing int) (out []api.PerClusterPlacementStatus) {
		for range applied {
			out = append(out, api.PerClusterPlacementStatus{ClusterName: "a", Conditions: []metav1.Condition{condition(api.Applied, "True", 1)}})
		}
		for range others {
			out = append(out, api.PerClusterPlacementStatus{ClusterName: "b"})
		}
		return append(out, make([]api.PerClusterPlacementStatus, missing)...)
	}
	for name, test := range map[string]struct {
		statuses          []api.PerClusterPlacementStatus
		selected, applied string
	}{
		"none":     {statuses(0, 0, 0), "0", "0/0"},
		"all":      {statuses(2, 0, 0), "2", "2/2"},
		"in part":  {statuses(1, 2, 0), "3", "1/3"},
		"missing":  {statuses(1, 1, 3), "2/5", "1/2"},
		"no other": {statuses(0, 0, 3), "0/3", "0/0"},
	} {
		r := Row{Value: &api.ResourcePlacement{Status: api.PlacementStatus{PlacementStatuses: test.statuses}}}
		if s, a := selectedClusters(r), appliedClusters(r); s != test.selected || a != test.applied {
			t.Errorf("%s: %s selected, %s applied; want %s, %s", name, s, a, test.selected, test.applied)
		}
	}
}

// The message of a cluster is that of its health, or else of another condition that is not true.
func TestMessageOfACluster(t *testing.T) {
	message := Clusters[len(Clusters)-1].Cell
	member := func(healthy metav1.ConditionStatus, others ...metav1.Condition) *api.MemberCluster {
		h := condition(api.Healthy, healthy, 1)
		h.Message = "health"
		return &api.MemberCluster{Status: api.MemberClusterStatus{Conditions: others, AgentStatus: []api.AgentStatus{{Type: api.MemberAgent, Conditions: []metav1.Condition{h}}}}}
	}
	missing := condition(api.PermissionsGranted, "False", 1)
	missing.Message = "permissions"
	for want, m := range map[string]*api.MemberCluster{"": member("True"), "health": member("False", missing), "permissions": member("True", missing)} {
		if got := message(Row{Value: m}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Ages are written as kubectl does; an unknown time is not an age.
func TestAges(t *testing.T) {
	for age, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "90s", 5 * time.Minute: "5m", 30 * time.Hour: "30h", 100 * 24 * time.Hour: "100d"} {
		if got := (Row{Now: noon}).Since(noon.Add(-age)); got != want {
			t.Errorf("%s: %s, want %s", age, got, want)
		}
	}
	if got := (Row{Now: noon}).Since(time.Time{}); got != "<unknown>" {
		t.Errorf("an unknown time: %s", got)
	}
}
