// Package health judges the availability of a live object.
//
// The result depends on the object only: no client, no clock, no history. Built-in kinds are
// judged by KubeFleet's rules, and custom resources by their conditions, as in kstatus. If
// nothing can be said, the result is NotTrackable, which counts as available.
package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Of returns the health of a live object. A known kind in another API version is NotTrackable.
func Of(live *unstructured.Unstructured) Health {
	gvk := live.GroupVersionKind()
	if rule, ok := rules[gvk]; ok {
		return rule(live)
	}
	if !api.BuiltInGroup(gvk.Group) {
		return custom(live)
	}
	return OfKind(gvk)
}

// NeedsStatus reports whether the health of a kind's objects depends on their content. Objects
// of other kinds are available as soon as they exist; see OfKind.
func NeedsStatus(gvk schema.GroupVersionKind) bool {
	_, ruled := rules[gvk]
	return ruled || !api.BuiltInGroup(gvk.Group)
}

// OfKind returns the health of existing objects of a kind for which NeedsStatus is false. For
// other kinds, the result is that the object is not available yet.
func OfKind(gvk schema.GroupVersionKind) Health {
	switch {
	case NeedsStatus(gvk):
		return Health{State: NotAvailableYet}
	case slices.Contains(availableAtOnce[gvk.GroupVersion()], gvk.Kind):
		return Health{State: Available}
	default:
		return Health{State: NotTrackable}
	}
}

// Ask judges the availability of a live object by its own expression instead of the rules of
// its kind; the rules still decide whether it has failed. While a controller has not observed
// the newest spec, the expression is not evaluated. The message may quote values of the object.
func Ask(live *unstructured.Unstructured, expression func(object map[string]any) (bool, error)) Health {
	f := fields{live: live}
	if _, says, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "observedGeneration"); says {
		if unseen := f.observed(); unseen != "" && f.err == nil {
			return Health{State: NotAvailableYet, Message: unseen, Unseen: true}
		}
	}
	holds, err := expression(live.Object)
	switch {
	case err != nil:
		return Unanswered(err)
	case !holds:
		return Health{State: NotAvailableYet, Message: "its expression does not hold", Failure: Of(live).Failure}
	default:
		return Health{State: Available}
	}
}

// Unanswered is the health of an object whose expression could not be evaluated.
func Unanswered(err error) Health {
	return Health{State: NotAvailableYet, Message: "its expression cannot be evaluated: " + err.Error()}
}

// rules are the rules of kinds that take time to become available.
var rules = map[schema.GroupVersionKind]func(*unstructured.Unstructured) Health{
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                               deployment,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                              statefulSet,
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:                                daemonSet,
	{Version: "v1", Kind: "Service"}:                                                 service,
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: definition,
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:                    disruptionBudget,
	{Group: "batch", Version: "v1", Kind: "Job"}:                                     job,
	{Group: "batch", Version: "v1", Kind: "CronJob"}:                                 cronJob,
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:                               replicaSet,
	{Version: "v1", Kind: "ReplicationController"}:                                   replicaSet,
	{Version: "v1", Kind: "Pod"}:                                                     pod,
	{Version: "v1", Kind: "PersistentVolumeClaim"}:                                   claim,
}

// availableAtOnce are the kinds that are available as soon as they exist.
var availableAtOnce = map[schema.GroupVersion][]string{
	{Version: "v1"}: {"Namespace", "Secret", "ConfigMap", "ServiceAccount", "LimitRange", "ResourceQuota"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"}: {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"},
	{Group: "networking.k8s.io", Version: "v1"}:         {"NetworkPolicy", "IngressClass"},
	{Group: "storage.k8s.io", Version: "v1"}:            {"StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity"},
	{Group: "apps", Version: "v1"}:                      {"ControllerRevision"},
	{Group: "scheduling.k8s.io", Version: "v1"}:         {"PriorityClass"},
}
