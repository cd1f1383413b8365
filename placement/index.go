package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Index finds objects by kind, namespace and name. It is built once for the objects of a
// commit, is immutable, and may be used concurrently.
type Index struct {
	entries []entry // in canonical order
	// byKind finds all objects of a kind in a namespace (or in none), and byNamespace everything
	// in a namespace. All lists are ascending.
	byKind      map[kindKey][]int
	byNamespace map[string][]int
	versions    map[api.GroupKind][]string
}

type entry struct {
	object  *api.Object
	gvk     schema.GroupVersionKind
	labels  labels.Set
	refused string // why the object is never propagated; empty if it may be
}

type kindKey struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// NewIndex returns the index of objects with unique IDs. It changes neither the list nor the
// objects, and the order of the list does not matter.
func NewIndex(objects []*api.Object) *Index {
	x := &Index{byKind: map[kindKey][]int{}, byNamespace: map[string][]int{}, versions: map[api.GroupKind][]string{}}
	services := map[string]bool{}
	for _, o := range Sorted(objects, func(o *api.Object) *api.Object { return o }) {
		gvk := o.Content.GroupVersionKind()
		if gvk == serviceKind {
			services[o.ID.Namespace+"/"+o.ID.Name] = true
		}
		x.add(entry{object: o, gvk: gvk, labels: o.Content.GetLabels()})
	}
	for i := range x.entries {
		if e := &x.entries[i]; refusals[e.gvk] != nil {
			e.refused = refusals[e.gvk](e.object.Content, services)
		}
	}
	return x
}

func (x *Index) add(e entry) {
	at := len(x.entries)
	x.entries = append(x.entries, e)
	in := kindKey{e.gvk, e.object.ID.Namespace}
	x.byKind[in] = append(x.byKind[in], at)
	if in.namespace != "" {
		x.byNamespace[in.namespace] = append(x.byNamespace[in.namespace], at)
	}
	gk := e.gvk.GroupKind()
	if !slices.Contains(x.versions[gk], e.gvk.Version) {
		x.versions[gk] = append(x.versions[gk], e.gvk.Version)
		slices.Sort(x.versions[gk])
	}
}

// scope infers from the objects whether a kind is namespaced.
func (x *Index) scope(gk api.GroupKind) (namespaced, known bool) {
	for _, version := range x.versions[gk] {
		if len(x.byKind[kindKey{gk.WithVersion(version), ""}]) > 0 {
			return false, true
		}
		known = true
	}
	return known, known
}
