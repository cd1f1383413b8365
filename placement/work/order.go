package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// ranks are those of the canonical order. A kind has its rank whatever its
// group, and kinds that are not listed come last.
var ranks = rankOf(
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange",
	"PodDisruptionBudget", "ServiceAccount", "Secret", "ConfigMap", "StorageClass",
	"PersistentVolume", "PersistentVolumeClaim", "CustomResourceDefinition",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service", "DaemonSet",
	"Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)

func rankOf(kinds ...string) map[string]int {
	m := make(map[string]int, len(kinds))
	for i, k := range kinds {
		m[k] = i
	}
	return m
}

// A position is an object's place in the canonical order.
type position struct {
	rank       int
	kind, name string
}

func positionOf(o *api.Object) position {
	gv := o.Object.GetAPIVersion()
	rank, ok := ranks[o.ID.Kind]
	p := position{rank: rank, kind: gv, name: o.ID.Namespace + "/" + o.ID.Name}
	if !ok {
		if o.ID.Group == "" {
			gv = "/" + gv
		}
		p.rank, p.kind = len(ranks), gv+", Kind="+o.ID.Kind
	}
	return p
}

func (p position) compare(o position) int {
	return cmp.Or(
		cmp.Compare(p.rank, o.rank),
		strings.Compare(p.kind, o.kind),
		strings.Compare(p.name, o.name),
	)
}

// sorted returns items in canonical order; those of equal place keep theirs.
func sorted[T any](items []T, object func(T) *api.Object) []T {
	type placed struct {
		position
		item T
	}
	all := make([]placed, len(items))
	for i, item := range items {
		all[i] = placed{positionOf(object(item)), item}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.compare(b.position) })
	out := make([]T, len(items))
	for i := range all {
		out[i] = all[i].item
	}
	return out
}
