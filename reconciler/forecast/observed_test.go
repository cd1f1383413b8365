package forecast

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Properties are those of the status, unless an annotation declares another value. Values that are no
// quantities are malformed.
func TestObservedClusters(t *testing.T) {
	m := &api.MemberCluster{}
	m.Name = "m1"
	m.Labels = map[string]string{"env": "prod"}
	m.Annotations = map[string]string{
		"other": "1", api.PropertyAnnotationPrefix + "rating": "7", api.PropertyAnnotationPrefix + "tier": "gold",
		api.PropertyAnnotationPrefix + "broken": "5",
	}
	m.Status.Properties = map[string]api.PropertyValue{
		"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.30.2"},
		"rating": {Value: "1"}, "broken": {Value: "yes"},
	}
	m.Status.ResourceUsage = api.ResourceUsage{
		Capacity:    api.ResourceList{"cpu": resource.MustParse("4")},
		Allocatable: api.ResourceList{"ephemeral-storage": resource.MustParse("9Gi")},
		Available:   api.ResourceList{"cpu": resource.MustParse("500m")},
	}
	c := observed(m)

	for name, want := range map[string]string{
		"kubernetes-fleet.io/node-count":                             "3",
		api.ResourcePropertyPrefix + "total-cpu":                     "4",
		api.ResourcePropertyPrefix + "allocatable-ephemeral-storage": "9Gi",
		api.ResourcePropertyPrefix + "available-cpu":                 "500m",
		"rating": "7",
		"broken": "5",
	} {
		if got, ok := c.Properties[name]; !ok || got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("property %s is %s, want %s", name, got.String(), want)
		}
	}
	if len(c.Properties) != 6 || len(c.Malformed) != 2 || c.Malformed["tier"] != "gold" || c.Malformed["k8s.io/k8s-version"] != "v1.30.2" {
		t.Errorf("properties %v, malformed %v", c.Properties, c.Malformed)
	}
	if c.Labels["env"] != "prod" {
		t.Errorf("labels %v", c.Labels)
	}
}

// Properties that were read too long ago are unknown, also in offline plans. Properties
// declared in Git are not.
func TestStalePropertiesAreUnknown(t *testing.T) {
	m := &api.MemberCluster{}
	m.Annotations = map[string]string{api.PropertyAnnotationPrefix + "rating": "7"}
	m.Status = api.MemberClusterStatus{
		Conditions: []metav1.Condition{
			{Type: api.ClusterPropertyCollectionSucceeded, Status: metav1.ConditionFalse, Reason: api.ClusterPropertiesStale},
			{Type: api.NamespaceCollectionSucceeded, Status: metav1.ConditionTrue},
		},
		Properties: map[string]api.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3"}}, Namespaces: map[string]string{"ns": ""},
		ResourceUsage: api.ResourceUsage{Capacity: api.ResourceList{"cpu": resource.MustParse("4")}},
	}
	c := observed(m)
	if _, declared := c.Properties["rating"]; len(c.Properties) != 1 || !declared || c.Namespaces != nil || c.NamespacesUnknown {
		t.Errorf("properties %v, namespaces %v", c.Properties, c.Namespaces)
	}
}

// The namespaces of a cluster are not known if they were not collected, or if nothing could be read.
func TestNamespacesOfACluster(t *testing.T) {
	collected := []metav1.Condition{{Type: api.NamespaceCollectionSucceeded, Status: metav1.ConditionFalse}}
	tests := map[string]struct {
		status  api.MemberClusterStatus
		known   bool
		unknown bool
	}{
		"not collected":           {api.MemberClusterStatus{Namespaces: map[string]string{"ns": "x"}}, false, false},
		"collected up to a limit": {api.MemberClusterStatus{Conditions: collected, Namespaces: map[string]string{"ns": "x"}}, true, false},
		"collection failed":       {api.MemberClusterStatus{Conditions: collected}, false, true},
		"collected, none there":   {api.MemberClusterStatus{Conditions: collected, Namespaces: map[string]string{}}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := observed(&api.MemberCluster{Status: test.status})
			if (c.Namespaces != nil) != test.known || c.NamespacesUnknown != test.unknown {
				t.Errorf("namespaces %v, unknown %t", c.Namespaces, c.NamespacesUnknown)
			}
		})
	}
}

// A cluster is eligible if its member agent has joined, and has been neither silent nor unhealthy for
// longer than five minutes.
func TestIneligibleByStatus(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	const limit = 5 * time.Minute
	joined := metav1.Condition{Type: api.Joined, Status: metav1.ConditionTrue}
	health := func(s metav1.ConditionStatus, d time.Duration) metav1.Condition {
		return metav1.Condition{Type: api.Healthy, Status: s, LastTransitionTime: ago(d)}
	}
	agent := func(heartbeat time.Duration, conditions ...metav1.Condition) []api.AgentStatus {
		return []api.AgentStatus{{Type: "Other"}, {Type: api.MemberAgent, Conditions: conditions, LastReceivedHeartbeat: ago(heartbeat)}}
	}
	const (
		offline   = "cluster is not connected to the fleet: "
		silent    = offline + "no recent heartbeat signals (last received 12.00 minutes ago)"
		notJoined = offline + "member agent not joined yet"
	)
	tests := map[string]struct {
		agents  []api.AgentStatus
		leaving bool
		want    string
	}{
		"healthy":                 {agent(0, joined, health("True", time.Hour)), false, ""},
		"leaving":                 {agent(0, joined, health("True", 0)), true, "cluster has left the fleet"},
		"never seen":              {nil, false, offline + "member agent not online yet"},
		"silent for 5 minutes":    {agent(limit, joined, health("True", 0)), false, ""},
		"silent for longer":       {agent(12*time.Minute, joined, health("True", 0)), false, silent},
		"not joined":              {agent(0, health("True", 0)), false, notJoined},
		"no longer joined":        {agent(0, metav1.Condition{Type: api.Joined, Status: "False"}, health("True", 0)), false, notJoined},
		"no health":               {agent(0, joined), false, offline + "health condition from member agent is not available"},
		"unhealthy for 5 minutes": {agent(0, joined, health("False", limit)), false, ""},
		"unhealthy for longer":    {agent(0, joined, health("Unknown", 90*time.Second+limit)), false, offline + "unhealthy for a prolonged period of time (last transitioned 6.50 minutes ago)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := &api.MemberCluster{Status: api.MemberClusterStatus{AgentStatus: test.agents}}
			if test.leaving {
				m.DeletionTimestamp = &metav1.Time{Time: now}
			}
			if got := ineligible(m, now); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
