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

var kindRanks = func() map[string]int {
	ranks := map[string]int{}
	for i, kind := range kindOrder {
		ranks[kind] = i
	}
	return ranks
}()

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
		k := keyed{rank: len(kindOrder), kind: gvk.String(), name: o.ID.Namespace + "/" + o.ID.Name, item: item}
		if rank, ranked := kindRanks[gvk.Kind]; ranked {
			k.rank, k.kind = rank, gvk.GroupVersion().String()
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
