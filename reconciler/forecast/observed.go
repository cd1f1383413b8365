package forecast

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
)

// observed returns a member cluster in the form that the scheduler uses, with the properties and namespaces in its
// status. It does not set Ineligible.
func observed(m *api.MemberCluster) placement.Cluster {
	c, seen := &hub.Cluster{MemberCluster: m}, &ledger.Cluster{}
	collected := meta.FindStatusCondition(m.Status.Conditions, api.ClusterPropertyCollectionSucceeded)
	if collected != nil && collected.Reason == api.ClusterPropertiesStale {
		return fleet.Cluster(c, nil)
	}
	seen.Properties = map[string]string{}
	usage := m.Status.ResourceUsage
	for kind, list := range map[string]api.ResourceList{"total-": usage.Capacity, "allocatable-": usage.Allocatable, "available-": usage.Available} {
		for name, q := range list {
			seen.Properties[api.ResourcePropertyPrefix+kind+name] = q.String()
		}
	}
	for name, p := range m.Status.Properties {
		seen.Properties[name] = p.Value
	}
	listed := meta.FindStatusCondition(m.Status.Conditions, api.NamespaceCollectionSucceeded) != nil
	if listed && m.Status.Namespaces != nil {
		seen.Namespaces = slices.AppendSeq([]string{}, maps.Keys(m.Status.Namespaces))
	}
	out := fleet.Cluster(c, seen)
	out.NamespacesUnknown = listed && m.Status.Namespaces == nil
	return out
}

// ineligible returns why a member gets no new placements, according to its status; empty if it does get them.
func ineligible(m *api.MemberCluster, now time.Time) string {
	const offline = "cluster is not connected to the fleet: "
	if m.DeletionTimestamp != nil {
		return "cluster has left the fleet"
	}
	i := slices.IndexFunc(m.Status.AgentStatus, func(a api.AgentStatus) bool { return a.Type == api.MemberAgent })
	if i < 0 {
		return offline + "member agent not online yet"
	}
	agent := m.Status.AgentStatus[i]
	if silent := now.Sub(agent.LastReceivedHeartbeat.Time); silent > fleet.UnreachableGrace {
		return fmt.Sprintf(offline+"no recent heartbeat signals (last received %.2f minutes ago)", silent.Minutes())
	}
	if !meta.IsStatusConditionTrue(agent.Conditions, api.Joined) {
		return offline + "member agent not joined yet"
	}
	healthy := meta.FindStatusCondition(agent.Conditions, api.Healthy)
	if healthy == nil {
		return offline + "health condition from member agent is not available"
	}
	if ill := now.Sub(healthy.LastTransitionTime.Time); healthy.Status != metav1.ConditionTrue && ill > fleet.UnreachableGrace {
		return fmt.Sprintf(offline+"unhealthy for a prolonged period of time (last transitioned %.2f minutes ago)", ill.Minutes())
	}
	return ""
}
