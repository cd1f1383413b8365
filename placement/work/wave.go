package work

import (
	"cmp"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// LastWave is the wave of all kinds that are not in the table, such as custom resources. StoreWave is that of the custom
// resources that others need before they can do anything.
const (
	StoreWave = LastWave - 1
	LastWave  = 999
)

// stores are the kinds of StoreWave: where Secrets and certificates come from.
var stores = map[api.GroupKind]bool{
	{Group: "external-secrets.io", Kind: "SecretStore"}: true, {Group: "external-secrets.io", Kind: "ClusterSecretStore"}: true,
	{Group: "cert-manager.io", Kind: "Issuer"}: true, {Group: "cert-manager.io", Kind: "ClusterIssuer"}: true,
}

// NeedsStores reports whether objects of a kind come after stores of the same group.
func NeedsStores(gk api.GroupKind) bool {
	for store := range stores {
		if store.Group == gk.Group {
			return !stores[gk]
		}
	}
	return false
}

// IsCustom reports whether a kind is a custom resource, or another one that an extension may serve.
func IsCustom(gk api.GroupKind) bool { return Wave(gk) >= StoreWave }

// waves are KubeFleet's, except that CustomResourceDefinitions are in the wave of namespaces,
// so that they are established before their objects are applied.
var waves = [][]string{
	{"Namespace", "PriorityClass", "CustomResourceDefinition"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget", "ServiceAccount", "Secret",
		"ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "IngressClass"},
	{"ClusterRole", "Role"},
	{"ClusterRoleBinding", "RoleBinding"},
	{"Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob", "Ingress"},
	{"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
}

// waveGroups are the groups whose kinds are in the table. A kind of the same name in another
// group is a custom resource.
var waveGroups = map[string]bool{
	"": true, "networking.k8s.io": true, "scheduling.k8s.io": true, "policy": true,
	"storage.k8s.io": true, "apiextensions.k8s.io": true, "rbac.authorization.k8s.io": true,
	"apps": true, "autoscaling": true, "apiregistration.k8s.io": true,
	"admissionregistration.k8s.io": true, "batch": true,
}

// Wave returns the wave in which objects of a kind are applied. Waves are applied in ascending
// order, and all objects of a wave at once. Wave 0 has namespaces and
// CustomResourceDefinitions, which should be established before the next wave.
func Wave(gk api.GroupKind) int {
	wave := slices.IndexFunc(waves, func(kinds []string) bool { return slices.Contains(kinds, gk.Kind) })
	if stores[gk] {
		return StoreWave
	}
	if wave < 0 || !waveGroups[gk.Group] {
		return LastWave
	}
	return wave
}

// DeleteOrder compares two objects by the order of deletion: waves descending, so that a custom
// resource is deleted before its definition and a namespace after its contents; within a wave
// by ID.
func DeleteOrder(a, b api.ID) int {
	return cmp.Or(cmp.Compare(Wave(b.GroupKind()), Wave(a.GroupKind())), a.Compare(b))
}
