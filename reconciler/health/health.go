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

// A State is the availability of an object, and also the reason of the condition Available.
type State string

// The states.
const (
	Available       State = api.ManifestAvailable
	NotAvailableYet State = api.ManifestNotAvailableYet
	// NotTrackable counts as available: the kind has no health check.
	NotTrackable State = api.ManifestNotTrackable
	// Failed means that the object could not be parsed.
	Failed State = api.ManifestAvailabilityCheckFailed
)

// A Health is a state with a message.
type Health struct {
	State State
	// Message says what is missing, such as "2 of 3 replicas available"; empty if there is
	// nothing to add to the state. An object that is NotTrackable has one while no pod of it has
	// started, so that it may be blocked.
	Message string
	// Unseen says that the controller has not observed the object yet.
	Unseen bool
	// Failure says why the object will not become available by itself, such as a Deployment
	// that exceeded its progress deadline. It is empty if the object is available or may still
	// become available.
	Failure string
}

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

// Counts reports whether the object counts as available.
func (h Health) Counts() bool { return h.State == Available || h.State == NotTrackable }

// Sentence is what is said around the message of an object that is not available.
func (h Health) Sentence() api.Sentence {
	if h.State == NotAvailableYet {
		return api.SaysNotAvailable
	}
	return api.SaysNotTracked
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
