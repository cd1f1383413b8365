package status

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// mirrored reports whether the status is shown in the namespace of the placed objects.
func (b *builder) mirrored() bool {
	return b.p.Key.Namespace == "" && b.p.Spec.Spec.StatusReportingScope == api.NamespaceAccessible
}

// placedNamespace is the namespace that a placement selects; empty if it names none.
func (b *builder) placedNamespace() string {
	for _, t := range b.p.Spec.Spec.ResourceSelectors {
		if t.Group == "" && t.Kind == "Namespace" {
			return t.Name
		}
	}
	return ""
}

// statusSynced is the condition StatusSynced.
func (b *builder) statusSynced(selected []api.ResourceIdentifier) conditions.Value {
	namespace := b.placedNamespace()
	why := fmt.Sprintf("the placement does not select the namespace %q", namespace)
	switch {
	case namespace == "":
		why = "the placement names no namespace"
	case slices.ContainsFunc(selected, func(i api.ResourceIdentifier) bool {
		return i.Group == "" && i.Kind == "Namespace" && i.Name == namespace
	}):
		return conditions.True(api.StatusSyncSucceeded, fmt.Sprintf("Successfully created or updated ClusterResourcePlacementStatus in namespace '%s'", namespace))
	}
	return conditions.False(api.StatusSyncFailed, "Failed to create or update ClusterResourcePlacementStatus: "+why)
}

// mirror returns the status as it is shown in the namespace; nil if it is not. An unchanged
// status is the same object as before, with the same time. old is the report before; nil if it said something else of clusters.
func (b *builder) mirror(of *api.ClusterResourcePlacement, old *placementEntry) *api.ClusterResourcePlacementStatus {
	if !b.mirrored() || !meta.IsStatusConditionTrue(of.Status.Conditions, b.prefix()+api.StatusSynced) {
		return nil
	}
	source := of.Status
	source.Conditions = slices.DeleteFunc(slices.Clone(source.Conditions), func(c metav1.Condition) bool {
		return strings.HasSuffix(c.Type, api.StatusSynced)
	})
	namespace := b.placedNamespace()
	if old != nil && old.mirror != nil && old.mirror.Namespace == namespace && reflect.DeepEqual(old.mirror.SourceStatus, source) {
		return old.mirror
	}
	const kind = "ClusterResourcePlacementStatus"
	return &api.ClusterResourcePlacementStatus{
		TypeMeta: metadata.Type(api.PlacementGroup, kind),
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name, Namespace: namespace, UID: metadata.UID(of.CreationTimestamp.Time, kind, namespace, of.Name), CreationTimestamp: of.CreationTimestamp,
		},
		SourceStatus: source, LastUpdatedTime: metav1.NewTime(b.in.Now),
	}
}
