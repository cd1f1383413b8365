package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// object returns a member cluster as declared, with its observed status. gitfleet's probes
// replace KubeFleet's agent. A cluster that another fleet holds has not joined.
func (in clusterInput) object(now time.Time) *api.MemberCluster {
	c, known, seen := in.declared, in.known, in.seen
	out := *c.MemberCluster
	out.TypeMeta = typeMeta(api.ClusterGroup, "MemberCluster")
	out.Annotations = maps.Clone(out.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[api.PathAnnotation] = c.Origin.String()
	out.UID, out.Generation, out.CreationTimestamp = clusterUID(c.Name, known), known.Generation, metav1.NewTime(known.Created)
	if known.Commit != "" {
		out.Annotations[api.CommitAnnotation] = known.Commit
	}
	if in.suspended != "" {
		out.Annotations[api.SuspendedAnnotation] = in.suspended
	}
	out.Status.Namespaces = namespaces(seen)
	if seen == nil || seen.Joined.IsZero() {
		out.Status.Conditions = []metav1.Condition{
			condition(api.Joined, metav1.ConditionUnknown, api.MemberClusterUnknown, never(seen), seen),
		}
		out.Status.Conditions = append(out.Status.Conditions, permissions(seen)...)
		if seen == nil {
			out.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
		}
		return &out
	}
	out.Status.Conditions = []metav1.Condition{
		condition(api.ReadyToJoin, metav1.ConditionTrue, api.MemberClusterReadyToJoin, "the credentials of the cluster are known", seen),
		condition(api.Joined, metav1.ConditionTrue, api.MemberClusterJoined, "the cluster has answered", seen),
	}
	if in.foreign != "" {
		out.Status.Conditions[1] = condition(api.Joined, metav1.ConditionFalse, api.MemberClusterForeign, in.foreign, seen)
	}
	for i := range out.Status.Conditions {
		out.Status.Conditions[i].LastTransitionTime = metav1.NewTime(seen.Joined)
	}
	out.Status.AgentStatus = []api.AgentStatus{{
		Type: api.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(seen.LastSeen),
		Conditions: []metav1.Condition{out.Status.Conditions[1], healthy(seen)},
	}}
	properties(&out.Status, seen)
	out.Status.Conditions = append(out.Status.Conditions, collected(seen, now)...)
	out.Status.Conditions = append(out.Status.Conditions, permissions(seen)...)
	return &out
}

// IsHealthy reports whether a member answered the last probe and was ready.
func IsHealthy(c *api.MemberCluster) bool {
	return slices.ContainsFunc(c.Status.AgentStatus, func(a api.AgentStatus) bool {
		return meta.IsStatusConditionTrue(a.Conditions, api.Healthy)
	})
}

func clusterID(name string) api.ID {
	return api.ID{Group: api.ClusterGroup, Kind: "MemberCluster", Name: name}
}

func clusterUID(name string, known ledger.Declared) types.UID {
	return UID(known.Created, "MemberCluster", name)
}

// collected returns the conditions about data that was read from the cluster in addition to its
// health. Data that was not read has no condition.
func collected(seen *ledger.Cluster, now time.Time) []metav1.Condition {
	var out []metav1.Condition
	if seen.Properties != nil {
		c := condition(api.ClusterPropertyCollectionSucceeded, metav1.ConditionTrue, api.ClusterPropertyCollectionSucceeded, "the properties of the cluster have been read", seen)
		c.LastTransitionTime = metav1.NewTime(seen.Joined)
		if plan.Stale(seen, now) {
			c.Status, c.Reason = metav1.ConditionFalse, api.ClusterPropertiesStale
			c.Message = "the properties of the cluster were last read at " + seen.Observed.UTC().Format(time.RFC3339) + ": that is too long ago, and scheduling takes them for unknown"
			c.LastTransitionTime = metav1.NewTime(plan.StaleFrom(seen))
		}
		out = append(out, c)
	}
	if seen.Namespaces != nil {
		c := condition(api.NamespaceCollectionSucceeded, metav1.ConditionTrue, api.NamespaceCollectionSucceeded, "the namespaces of the cluster have been read, all of them", seen)
		c.LastTransitionTime = metav1.NewTime(seen.Joined)
		out = append(out, c)
	}
	return out
}

// permissions returns the condition that permissions are missing on a cluster, if any are.
func permissions(seen *ledger.Cluster) []metav1.Condition {
	if seen == nil || seen.Denied() == "" {
		return nil
	}
	c := condition(api.PermissionsGranted, metav1.ConditionFalse, api.PermissionsMissing, seen.Denied(), seen)
	c.LastTransitionTime = metav1.NewTime(seen.ForbiddenSince)
	return []metav1.Condition{c}
}

// namespaces returns the namespaces of a cluster. Their placements are not listed here but in
// the placements' statuses.
func namespaces(seen *ledger.Cluster) map[string]string {
	if seen == nil || seen.Namespaces == nil {
		return nil
	}
	out := make(map[string]string, len(seen.Namespaces))
	for _, name := range seen.Namespaces {
		out[name] = ""
	}
	return out
}

func never(seen *ledger.Cluster) string {
	if seen != nil && seen.Denied() != "" {
		return seen.Denied()
	}
	if seen == nil || seen.Error == "" {
		return "the cluster has not answered yet"
	}
	return "the cluster has not answered yet: " + seen.Error
}

func healthy(seen *ledger.Cluster) metav1.Condition {
	kept := ""
	if seen.Unrenewed != "" {
		kept = "; its new credentials cannot be used, and the old ones are kept: " + seen.Unrenewed
	}
	if seen.Healthy {
		return condition(api.Healthy, metav1.ConditionTrue, api.MemberClusterHealthy, "the API server is ready"+kept, seen)
	}
	if denied := seen.Denied(); denied != "" {
		return condition(api.Healthy, metav1.ConditionFalse, api.MemberClusterForbidden, denied+kept, seen)
	}
	return condition(api.Healthy, metav1.ConditionFalse, api.MemberClusterUnhealthy, cmp.Or(seen.Error, "the API server is not ready")+kept, seen)
}

func condition(typ string, status metav1.ConditionStatus, reason, message string, seen *ledger.Cluster) metav1.Condition {
	c := metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message}
	if seen != nil {
		c.LastTransitionTime = metav1.NewTime(seen.Since)
	}
	return c
}

// properties puts the observed properties into KubeFleet's two fields.
func properties(s *api.MemberClusterStatus, seen *ledger.Cluster) {
	at := metav1.NewTime(seen.Observed)
	s.ResourceUsage.ObservationTime = at
	lists := map[string]*api.ResourceList{
		"total": &s.ResourceUsage.Capacity, "allocatable": &s.ResourceUsage.Allocatable, "available": &s.ResourceUsage.Available,
	}
	for name, value := range seen.Properties {
		rest, isResource := strings.CutPrefix(name, api.ResourcePropertyPrefix)
		if !isResource {
			if s.Properties == nil {
				s.Properties = map[string]api.PropertyValue{}
			}
			s.Properties[name] = api.PropertyValue{Value: value, ObservationTime: at}
			continue
		}
		of, kind, _ := strings.Cut(rest, "-")
		list := lists[of]
		q, err := resource.ParseQuantity(value)
		if list == nil || err != nil {
			continue
		}
		if *list == nil {
			*list = api.ResourceList{}
		}
		(*list)[kind] = q
	}
}
