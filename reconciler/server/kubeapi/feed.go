package kubeapi

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// A typed is one of gitfleet's kinds: a pointer to a struct that begins with its kind and its
// metadata.
type typed[T any] interface {
	*T
	GetObjectKind() schema.ObjectKind
	GetObjectMeta() metav1.Object
}

// A reported source is an object of the report. While it does not change, its pointer is the same
// in consecutive reports.
type reported[T any, P typed[T]] struct{ of P }

func (s reported[T, P]) meta() *metav1.ObjectMeta { return s.of.GetObjectMeta().(*metav1.ObjectMeta) }

func (s reported[T, P]) Key() (string, string) { return s.meta().Namespace, s.meta().Name }

func (s reported[T, P]) Same(old store.Source) bool { return s.of == old.(reported[T, P]).of }

func (s reported[T, P]) Object() *store.Object {
	kind := *s.of.GetObjectKind().(*metav1.TypeMeta)
	return &store.Object{TypeMeta: kind, ObjectMeta: *s.meta(), Value: s.of, Content: func(meta metav1.ObjectMeta) (any, error) {
		out := *s.of
		*reported[T, P]{&out}.meta() = meta
		return content(&out), nil
	}}
}

// content returns the value to encode, which the caller may change.
func content(object any) any {
	switch p := object.(type) {
	case *api.ClusterResourcePlacement:
		statuses := p.Status.PlacementStatuses
		p.Status.PlacementStatuses = nil
		return placementJSON{p, statuses}
	case *api.ResourcePlacement:
		statuses := p.Status.PlacementStatuses
		p.Status.PlacementStatuses = nil
		return placementJSON{p, statuses}
	}
	return object
}

// sources returns the sorted sources of one kind, using the given memory.
func sources[T any, P typed[T]](space *[]store.Source, objects []P) []store.Source {
	out := (*space)[:0]
	for _, o := range objects {
		out = append(out, reported[T, P]{o})
	}
	*space = out
	if !slices.IsSortedFunc(out, store.Compare) {
		slices.SortFunc(out, store.Compare)
	}
	return out
}

// metaOf returns the metadata of a declared object as it is served.
func metaOf(meta metav1.ObjectMeta, origin api.Origin, known ledger.Declared) metav1.ObjectMeta {
	meta.Annotations = maps.Clone(meta.Annotations)
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[api.CommitAnnotation], meta.Annotations[api.PathAnnotation] = known.Commit, origin.String()
	meta.Generation = known.Generation
	meta.CreationTimestamp = metav1.NewTime(known.Created)
	return meta
}
