package diff

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// immutableFields are the immutable fields of built-in kinds that manifests usually set.
var immutableFields = map[api.GroupKind][][]string{
	{Group: "apps", Kind: "DaemonSet"}:  {{"spec", "selector"}},
	{Group: "apps", Kind: "Deployment"}: {{"spec", "selector"}},
	{Group: "apps", Kind: "ReplicaSet"}: {{"spec", "selector"}},
	{Group: "apps", Kind: "StatefulSet"}: {
		{"spec", "selector"}, {"spec", "serviceName"}, {"spec", "podManagementPolicy"}, {"spec", "volumeClaimTemplates"},
	},
	{Group: "batch", Kind: "Job"}: {{"spec", "selector"}, {"spec", "template"}, {"spec", "completionMode"}},
	{Kind: "Secret"}:              {{"type"}},
	{Kind: "Service"}:             {{"spec", "clusterIP"}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               {{"spec", "controller"}},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     {{"handler"}},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {{"roleRef"}},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {{"roleRef"}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              {{"value"}},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  {{"provisioner"}, {"parameters"}, {"reclaimPolicy"}, {"volumeBindingMode"}},
}

// mostlyImmutable are built-in kinds of which only a few fields can be changed.
var mostlyImmutable = map[api.GroupKind]bool{
	{Kind: "PersistentVolume"}: true,
	{Kind: "Pod"}:              true,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}: true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:      true,
}

// A Recreation says whether an object has to be deleted and created again to change its
// content.
type Recreation string

// The recreations.
const (
	NotRecreated Recreation = ""
	// MayBeRecreated says that it depends on the cluster: for custom resources, and if a field
	// is set whose value the cluster has chosen so far.
	MayBeRecreated Recreation = "may be recreated"
	Recreated      Recreation = "recreated"
)

// RecreationOf returns whether an object with an api.RecreateAnnotation is recreated when its
// manifest changes, as far as that follows from the manifests.
func RecreationOf(before, after *unstructured.Unstructured) Recreation {
	kind := after.GroupVersionKind().GroupKind()
	if after.GetAnnotations()[api.RecreateAnnotation] != api.RecreateEnabled || !api.Recreatable(kind) {
		return NotRecreated
	}
	before, after = Normalize(before), Normalize(after)
	fields := immutableFields[kind]
	if fixed, _, _ := unstructured.NestedBool(before.Object, "immutable"); fixed && (kind == api.GroupKind{Kind: "ConfigMap"} || kind == api.GroupKind{Kind: "Secret"}) {
		fields = append([][]string{{"data"}, {"binaryData"}, {"immutable"}}, fields...)
	}
	result := NotRecreated
	for _, path := range fields {
		old, had, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		now, has, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
		switch {
		case had != has:
			result = MayBeRecreated
		case !reflect.DeepEqual(old, now):
			return Recreated
		}
	}
	if _, builtin := api.Namespaced(kind); !builtin || mostlyImmutable[kind] {
		return MayBeRecreated
	}
	return result
}
