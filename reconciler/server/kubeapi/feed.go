package kubeapi

import (
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
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

// A placed source is an object of the report about a placement, of which the report makes what it says of clusters when it is
// asked for.
type placed[T any, P typed[T]] struct {
	reported[T, P]
	*onDemand
	make func(*status.OnDemand) P
}

// An onDemand makes what the newest report with an object says of clusters. The object keeps no older report in memory.
type onDemand struct {
	atomic.Pointer[status.OnDemand] // nil if the object has everything
	// report is the number of the newest report with the object. Publish alone uses it.
	report int
}

func (d *onDemand) in() int { return d.report }

func (s placed[T, P]) Same(old store.Source) bool { return s.of == old.(placed[T, P]).of }

// whole returns the object with everything.
func (s placed[T, P]) whole() any {
	if from := s.Load(); from != nil {
		return s.make(from)
	}
	return s.of
}

// row returns the object and the outline of what it says of clusters, which suffice for its row in a table; nil if the object has
// everything.
func (s placed[T, P]) row() (any, *status.Outline) {
	from := s.Load()
	if from == nil {
		return s.of, nil
	}
	outline := from.Outline()
	return s.of, &outline
}

func (s placed[T, P]) Object() *store.Object {
	o := s.reported.Object()
	o.Value = s
	o.Content = func(meta metav1.ObjectMeta) (any, error) {
		out := *s.whole().(P)
		*reported[T, P]{&out}.meta() = meta
		return content(&out), nil
	}
	return o
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
