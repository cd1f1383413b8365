package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// kindOrder orders kinds by name; the group is ignored. It is the order of statuses and content
// hashes, not the order of application.
var kindOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// Sorted returns items in the canonical order of their objects: by rank of the kind, by group and
// version, by namespace and name. The sort is stable. Kinds without a rank come after all others.
func Sorted[T any](items []T, object func(T) *api.Object) []T {
	type keyed struct {
		rank       int
		kind, name string
		item       T
	}
	keys := make([]keyed, len(items))
	for i, item := range items {
		o := object(item)
		gvk := o.Content.GroupVersionKind()
		k := keyed{rank: slices.Index(kindOrder, gvk.Kind), kind: gvk.GroupVersion().String(), name: o.ID.Namespace + "/" + o.ID.Name, item: item}
		if k.rank < 0 {
			k.rank, k.kind = len(kindOrder), gvk.String()
		}
		keys[i] = k
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	out := make([]T, len(items))
	for i := range keys {
		out[i] = keys[i].item
	}
	return out
}
