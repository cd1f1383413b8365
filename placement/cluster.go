package placement

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// ResourceProperty is the prefix of the properties for resources of a cluster's nodes. It is
// followed by total-, allocatable- or available- and the name of the resource.
const ResourceProperty = "resources.kubernetes-fleet.io/"

// ClusterOf returns a member cluster as the scheduler sees it, from its labels, taints,
// annotations and status. It does not set Ineligible; see [Ineligible]. A property declared by
// an annotation overrides an observed one.
func ClusterOf(m *api.MemberCluster) Cluster {
	c := Cluster{Name: m.Name, Taints: m.Spec.Taints, Properties: map[string]resource.Quantity{}}
	c.Labels = make(map[string]string, len(m.Labels)+1)
	maps.Copy(c.Labels, m.Labels)
	c.Labels[api.MemberNameLabel] = m.Name

	collected := meta.FindStatusCondition(m.Status.Conditions, api.ClusterPropertyCollectionSucceeded)
	stale := collected != nil && collected.Reason == api.ClusterPropertiesStale // the properties are unknown
	if !stale {
		c.observed(&m.Status)
	}
	for name, value := range m.Annotations {
		if property, ok := strings.CutPrefix(name, api.PropertyAnnotationPrefix); ok {
			c.SetProperty(property, value)
		}
	}
	if !stale && meta.FindStatusCondition(m.Status.Conditions, api.NamespaceCollectionSucceeded) != nil {
		c.addNamespaces(m.Status.Namespaces)
	}
	return c
}

// observed copies the properties in the status.
func (c *Cluster) observed(s *api.MemberClusterStatus) {
	c.addResources("total-", s.ResourceUsage.Capacity)
	c.addResources("allocatable-", s.ResourceUsage.Allocatable)
	c.addResources("available-", s.ResourceUsage.Available)
	for name, p := range s.Properties {
		c.SetProperty(name, p.Value)
	}
}

func (c *Cluster) addResources(kind string, list api.ResourceList) {
	for name, q := range list {
		c.Properties[ResourceProperty+kind+name] = q
	}
}

// SetProperty sets a property, replacing its previous value. A value that is not a quantity
// makes it Malformed. The cluster's Properties must not be nil.
func (c *Cluster) SetProperty(name, value string) {
	q, err := resource.ParseQuantity(value)
	if err == nil {
		c.Properties[name] = q
		delete(c.Malformed, name)
		return
	}
	if c.Malformed == nil {
		c.Malformed = map[string]string{}
	}
	c.Malformed[name] = value
	delete(c.Properties, name)
}

func (c *Cluster) addNamespaces(seen map[string]string) {
	if seen == nil {
		c.NamespacesUnknown = true
		return
	}
	c.Namespaces = make(map[string]bool, len(seen))
	for name := range seen {
		c.Namespaces[name] = true
	}
}

// unreachableGrace is how long, inclusively, a member may be silent or unhealthy and still be
// eligible.
const unreachableGrace = 5 * time.Minute

// Ineligible returns why a member gets no new placements, according to its status; empty if it
// does get them.
func Ineligible(m *api.MemberCluster, now time.Time) string {
	const offline = "cluster is not connected to the fleet: "
	if m.DeletionTimestamp != nil {
		return "cluster has left the fleet"
	}
	agent := findAgent(m)
	if agent == nil {
		return offline + "member agent not online yet"
	}
	if silent := now.Sub(agent.LastReceivedHeartbeat.Time); silent > unreachableGrace {
		return fmt.Sprintf(offline+"no recent heartbeat signals (last received %.2f minutes ago)", silent.Minutes())
	}
	if joined := meta.FindStatusCondition(agent.Conditions, api.Joined); joined == nil || joined.Status != metav1.ConditionTrue {
		return offline + "member agent not joined yet"
	}
	healthy := meta.FindStatusCondition(agent.Conditions, api.Healthy)
	if healthy == nil {
		return offline + "health condition from member agent is not available"
	}
	if ill := now.Sub(healthy.LastTransitionTime.Time); healthy.Status != metav1.ConditionTrue && ill > unreachableGrace {
		return fmt.Sprintf(offline+"unhealthy for a prolonged period of time (last transitioned %.2f minutes ago)", ill.Minutes())
	}
	return ""
}

func findAgent(m *api.MemberCluster) *api.AgentStatus {
	for i := range m.Status.AgentStatus {
		if m.Status.AgentStatus[i].Type == api.MemberAgent {
			return &m.Status.AgentStatus[i]
		}
	}
	return nil
}
