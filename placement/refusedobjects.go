package placement

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

var (
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	serviceKind   = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
)

// Kinds of deniedGroups and deniedKinds are not propagated, in any version: they describe the
// state of one cluster and mean nothing on another.
var (
	deniedGroups = map[string]bool{
		"events.k8s.io":       true,
		"coordination.k8s.io": true,
		"metrics.k8s.io":      true,
	}
	deniedKinds = map[api.GroupKind]bool{
		{Kind: "Pod"}:   true,
		{Kind: "Node"}:  true,
		{Kind: "Event"}: true,
		{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:         true,
		{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}: true,
		{Group: "networking.fleet.azure.com", Kind: "TrafficManagerBackend"}: true,
	}
)

// neverSelected reports whether objects of a kind are never content of a placement.
func neverSelected(gvk schema.GroupVersionKind) bool {
	return isConfiguration(gvk) || NeverPropagated(gvk)
}

// NeverPropagated reports whether a kind describes the state of one cluster. It is not propagated
// unless it is in an envelope.
func NeverPropagated(gvk schema.GroupVersionKind) bool {
	return deniedGroups[gvk.Group] || deniedKinds[gvk.GroupKind()]
}

// isConfiguration reports whether a kind configures gitfleet. Such objects are never content,
// except envelopes.
func isConfiguration(gvk schema.GroupVersionKind) bool {
	switch gvk.Group {
	case api.ClusterGroup:
		return true
	case api.PlacementGroup:
		return gvk.Kind != "ResourceEnvelope" && gvk.Kind != "ClusterResourceEnvelope"
	}
	return false
}

// refusals are reasons not to propagate objects that each cluster creates for itself, and that
// appear in dumps of a cluster.
var refusals = map[schema.GroupVersionKind]func(o *unstructured.Unstructured, services map[string]bool) string{
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:         owned,
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"}: owned,
	{Version: "v1", Kind: "ConfigMap"}:                         named("kube-root-ca.crt"),
	{Version: "v1", Kind: "ServiceAccount"}:                    named("default"),
	{Version: "v1", Kind: "Secret"}: func(o *unstructured.Unstructured, _ map[string]bool) string {
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		return because(kind == "kubernetes.io/service-account-token", "every cluster issues its own service account tokens")
	},
	{Version: "v1", Kind: "Endpoints"}: func(o *unstructured.Unstructured, services map[string]bool) string {
		return because(services[o.GetNamespace()+"/"+o.GetName()], "every cluster makes the endpoints of the Service of that name")
	},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}: func(o *unstructured.Unstructured, _ map[string]bool) string {
		_, managed := o.GetLabels()["endpointslice.kubernetes.io/managed-by"]
		return because(managed, "a controller makes it on every cluster")
	},
}

func owned(o *unstructured.Unstructured, _ map[string]bool) string {
	owners, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "ownerReferences")
	list, _ := owners.([]any)
	return because(len(list) > 0, "its owner makes it on every cluster")
}

func named(name string) func(*unstructured.Unstructured, map[string]bool) string {
	return func(o *unstructured.Unstructured, _ map[string]bool) string {
		return because(o.GetName() == name, "every cluster makes its own")
	}
}

func because(fits bool, why string) string {
	if fits {
		return why
	}
	return ""
}
