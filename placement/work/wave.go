package work

import (
	"cmp"

	"github.com/gitfleet/gitfleet/placement/api"
)

// LastWave is that of all kinds the table does not know, custom resources
// above all.
const LastWave = 999

// waves are KubeFleet's, with one kind moved: custom resource definitions go
// with the namespaces, so that what needs them finds them established.
var waves = func() map[string]int {
	m := map[string]int{}
	for wave, kinds := range [][]string{
		{"Namespace", "PriorityClass", "CustomResourceDefinition"},
		{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
			"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume",
			"PersistentVolumeClaim", "IngressClass"},
		{"ClusterRole", "Role"},
		{"ClusterRoleBinding", "RoleBinding"},
		{"Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment",
			"HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob", "Ingress"},
		{"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
	} {
		for _, kind := range kinds {
			m[kind] = wave
		}
	}
	return m
}()

// waveGroups are the groups whose kinds the table knows. A kind of the same
// name in another group is a custom resource.
var waveGroups = map[string]bool{
	"": true, "networking.k8s.io": true, "scheduling.k8s.io": true, "policy": true,
	"storage.k8s.io": true, "apiextensions.k8s.io": true, "rbac.authorization.k8s.io": true,
	"apps": true, "autoscaling": true, "apiregistration.k8s.io": true,
	"admissionregistration.k8s.io": true, "batch": true,
}

// Wave says when objects of a kind are applied: wave after wave in rising
// order, within a wave all at once. Wave 0 holds what others stand on,
// namespaces and custom resource definitions, and should be established before
// the next begins.
func Wave(gk api.GroupKind) int {
	wave, ok := waves[gk.Kind]
	if !ok || !waveGroups[gk.Group] {
		return LastWave
	}
	return wave
}

// DeleteOrder compares two objects by when they are deleted: waves in falling
// order, so that a custom resource goes before its definition and a namespace
// after what is in it; within a wave by ID.
func DeleteOrder(a, b api.ID) int {
	return cmp.Or(
		cmp.Compare(Wave(b.GroupKind()), Wave(a.GroupKind())),
		a.Compare(b),
	)
}
