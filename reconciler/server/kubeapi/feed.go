package kubeapi

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// live are the sources that every report has anew. Of two reports in a row, what
// says the same is the same object.
func live(r *status.Report) (placements, namespaced, clusters, mirrors []store.Source) {
	placements = make([]store.Source, len(r.Placements))
	for i, p := range r.Placements {
		placements[i] = clusterPlacement{o: p}
	}
	namespaced = make([]store.Source, len(r.ResourcePlacements))
	for i, p := range r.ResourcePlacements {
		namespaced[i] = namespacedPlacement{o: p}
	}
	clusters = make([]store.Source, len(r.Clusters))
	for i, c := range r.Clusters {
		clusters[i] = memberCluster{c}
	}
	mirrors = make([]store.Source, len(r.Statuses))
	for i, s := range r.Statuses {
		mirrors[i] = mirror{o: s}
	}
	slices.SortFunc(mirrors, store.Compare)
	return placements, namespaced, clusters, mirrors
}

// complete is a source whose metadata a report tells in full: nothing has to be
// remembered of it.
type complete struct{}

func (complete) First(store.Moment) store.Known { return store.Known{} }

func (complete) Next(_ store.Moment, _ store.Source, known store.Known) (store.Known, bool) {
	return known, true
}

type clusterPlacement struct {
	complete
	o *api.ClusterResourcePlacement
}

func (s clusterPlacement) Key() (string, string) { return "", s.o.Name }
func (s clusterPlacement) Of() any               { return s.o }

func (s clusterPlacement) Object(store.Known) *store.Object {
	return &store.Object{TypeMeta: s.o.TypeMeta, ObjectMeta: s.o.ObjectMeta, Value: s.o, Content: func(meta metav1.ObjectMeta) (any, error) {
		out := *s.o
		out.ObjectMeta = meta
		return &out, nil
	}}
}

type namespacedPlacement struct {
	complete
	o *api.ResourcePlacement
}

func (s namespacedPlacement) Key() (string, string) { return s.o.Namespace, s.o.Name }
func (s namespacedPlacement) Of() any               { return s.o }

func (s namespacedPlacement) Object(store.Known) *store.Object {
	return &store.Object{TypeMeta: s.o.TypeMeta, ObjectMeta: s.o.ObjectMeta, Value: s.o, Content: func(meta metav1.ObjectMeta) (any, error) {
		out := *s.o
		out.ObjectMeta = meta
		return &out, nil
	}}
}

type mirror struct {
	complete
	o *api.ClusterResourcePlacementStatus
}

func (s mirror) Key() (string, string) { return s.o.Namespace, s.o.Name }
func (s mirror) Of() any               { return s.o }

func (s mirror) Object(store.Known) *store.Object {
	return &store.Object{TypeMeta: s.o.TypeMeta, ObjectMeta: s.o.ObjectMeta, Value: s.o, Content: func(meta metav1.ObjectMeta) (any, error) {
		out := *s.o
		out.ObjectMeta = meta
		return &out, nil
	}}
}

type memberCluster struct{ o *api.MemberCluster }

func (s memberCluster) Key() (string, string) { return "", s.o.Name }
func (s memberCluster) Of() any               { return s.o }

func (s memberCluster) First(m store.Moment) store.Known { return first(m) }

func (s memberCluster) Next(m store.Moment, old store.Source, known store.Known) (store.Known, bool) {
	was := old.(memberCluster).o
	spec := !reflect.DeepEqual(was.Spec, s.o.Spec)
	if spec {
		known.Generation++
	}
	if spec || !maps.Equal(was.Labels, s.o.Labels) || !maps.Equal(was.Annotations, s.o.Annotations) {
		known.Commit = m.Commit
	}
	return known, true
}

func (s memberCluster) Object(known store.Known) *store.Object {
	meta := metaOf(s.o.ObjectMeta, known)
	return &store.Object{TypeMeta: s.o.TypeMeta, ObjectMeta: meta, Value: s.o, Content: func(meta metav1.ObjectMeta) (any, error) {
		out := *s.o
		out.ObjectMeta = meta
		return &out, nil
	}}
}

// first is what is known of something that the commit in force has.
func first(m store.Moment) store.Known {
	return store.Known{Created: m.Time, Commit: m.Commit, Generation: 1}
}

// metaOf is the metadata of something that was declared, as it is served.
func metaOf(meta metav1.ObjectMeta, known store.Known) metav1.ObjectMeta {
	meta.Annotations = maps.Clone(meta.Annotations)
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[api.CommitAnnotation] = known.Commit
	meta.Generation = known.Generation
	meta.CreationTimestamp = metav1.NewTime(known.Created)
	return meta
}

func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
