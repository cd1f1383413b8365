// Package membercluster reports a member cluster: Object as KubeFleet's MemberCluster, and Events about its changes.
package membercluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// An Input is everything that the report of a cluster depends on, except the time.
type Input struct {
	Declared  *hub.Cluster
	Known     ledger.Declared
	Seen      *ledger.Cluster
	Suspended string // why nothing is written to the cluster; empty if it is not suspended
	// Refusal is why the cluster is refused, because another fleet or another member has claimed it; empty if it is
	// not. SameAs is that other member.
	Refusal, SameAs string
	// Cordoned says that the cluster is drained.
	Cordoned bool
}

// Object returns the member cluster as declared, with its observed status. gitfleet's probes
// replace KubeFleet's agent. A cluster that another fleet or another member has claimed has not joined. If its namespaces
// equal one of the given maps, that map is used, so that reports share it.
func (in Input) Object(now time.Time, sharable ...map[string]string) *api.MemberCluster {
	c, known, seen := in.Declared, in.Known, in.Seen
	out := *c.MemberCluster
	out.TypeMeta = metadata.Type(api.ClusterGroup, "MemberCluster")
	out.UID, out.Generation, out.CreationTimestamp = metadata.ClusterUID(c.Name, known.Created), known.Generation, metav1.NewTime(known.Created)
	out.Annotations = map[string]string{}
	maps.Copy(out.Annotations, c.Annotations)
	out.Annotations[api.PathAnnotation] = c.Origin.String()
	if known.Commit != "" {
		out.Annotations[api.CommitAnnotation] = known.Commit
	}
	if in.Cordoned {
		out.Spec.Taints = append(slices.Clone(out.Spec.Taints), api.CordonTaint())
	}
	if in.Suspended != "" {
		out.Annotations[api.SuspendedAnnotation] = in.Suspended
	}
	if seen == nil {
		seen = &ledger.Cluster{Since: now}
	}
	s := &out.Status
	s.Namespaces = namespaces(seen.Namespaces, sharable)
	if seen.Joined.IsZero() {
		s.Conditions = []metav1.Condition{condition(api.Joined, metav1.ConditionUnknown, api.MemberClusterUnknown, unansweredMessage(seen), seen.Since)}
	} else {
		joined := condition(api.Joined, metav1.ConditionTrue, api.MemberClusterJoined, "the cluster has answered", seen.Joined)
		if in.Refusal != "" {
			joined = condition(api.Joined, metav1.ConditionFalse, in.refusalReason(), in.Refusal, seen.Joined)
		}
		s.Conditions = []metav1.Condition{
			condition(api.ReadyToJoin, metav1.ConditionTrue, api.MemberClusterReadyToJoin, "the credentials of the cluster are known", seen.Joined), joined,
		}
		s.AgentStatus = []api.AgentStatus{{
			Type: api.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(seen.LastSeen), Conditions: []metav1.Condition{joined, healthy(seen)},
		}}
		properties(s, seen)
		s.Conditions = append(s.Conditions, collected(seen, now)...)
	}
	if denied := seen.Denied(); denied != "" {
		s.Conditions = append(s.Conditions, condition(api.PermissionsGranted, metav1.ConditionFalse, api.PermissionsMissing, denied, seen.ForbiddenSince))
	}
	if outdated := seen.Outdated(); outdated != "" {
		s.Conditions = append(s.Conditions, condition(api.CredentialsRenewed, metav1.ConditionFalse, api.CredentialsUnusable, outdated, seen.UnrenewedSince))
	}
	return &out
}

// namespaces returns names with empty values, since their placements are in the placements' statuses; nil if there is no list. If one
// of some results has the same names, it is that one.
func namespaces(names []string, sharable []map[string]string) map[string]string {
	if names == nil {
		return nil
	}
	for _, known := range sharable {
		missing := func(name string) bool { _, has := known[name]; return !has }
		if known != nil && len(known) == len(names) && !slices.ContainsFunc(names, missing) {
			return known
		}
	}
	out := make(map[string]string, len(names))
	for _, name := range names {
		out[name] = ""
	}
	return out
}

// refusalReason is the reason of a refused cluster.
func (in Input) refusalReason() string {
	if in.SameAs != "" {
		return api.MemberClusterDuplicate
	}
	return api.MemberClusterForeign
}

// collected returns the conditions about data that was read from the cluster in addition to its
// health. Data that was not read has no condition.
func collected(seen *ledger.Cluster, now time.Time) []metav1.Condition {
	var out []metav1.Condition
	switch typ := api.ClusterPropertyCollectionSucceeded; {
	case seen.Properties == nil:
	case fleet.Stale(seen, now):
		text := "the properties of the cluster were last read at " + seen.Observed.UTC().Format(time.RFC3339) + ": that is too long ago, and scheduling takes them for unknown"
		out = append(out, condition(typ, metav1.ConditionFalse, api.ClusterPropertiesStale, text, fleet.StaleFrom(seen)))
	case seen.Unread != "":
		text := "some properties of the cluster could not be read, and scheduling takes them for unknown: " + seen.Unread
		out = append(out, condition(typ, metav1.ConditionFalse, api.ClusterPropertiesIncomplete, text, seen.Joined))
	default:
		out = append(out, condition(typ, metav1.ConditionTrue, typ, "the properties of the cluster have been read", seen.Joined))
	}
	if typ := api.NamespaceCollectionSucceeded; seen.Namespaces != nil {
		out = append(out, condition(typ, metav1.ConditionTrue, typ, "the namespaces of the cluster have been read, all of them", seen.Joined))
	}
	return out
}

// unansweredMessage says why the cluster has not answered yet.
func unansweredMessage(seen *ledger.Cluster) string {
	if denied := seen.Denied(); denied != "" {
		return denied
	}
	if seen.Error == "" {
		return "the cluster has not answered yet"
	}
	return "the cluster has not answered yet: " + seen.Error
}

func healthy(seen *ledger.Cluster) metav1.Condition {
	denied := seen.Denied()
	switch {
	case seen.Healthy:
		return condition(api.Healthy, metav1.ConditionTrue, api.MemberClusterHealthy, "the API server is ready", seen.Since)
	case denied != "":
		return condition(api.Healthy, metav1.ConditionFalse, api.MemberClusterForbidden, denied, seen.Since)
	}
	return condition(api.Healthy, metav1.ConditionFalse, api.MemberClusterUnhealthy, cmp.Or(seen.Error, "the API server is not ready"), seen.Since)
}

func condition(typ string, status metav1.ConditionStatus, reason, message string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)}
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
		q, err := api.ParseQuantity(value)
		if list == nil || err != nil {
			continue
		}
		if *list == nil {
			*list = api.ResourceList{}
		}
		(*list)[kind] = q
	}
}
