package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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

// suggestName suggests the name of an object of the same kind and namespace.
func (x *Index) suggestName(in kindKey, name string) string {
	if name == "" {
		return ""
	}
	names := make([]string, 0, len(x.byKind[in]))
	for _, at := range x.byKind[in] {
		names = append(names, x.entries[at].object.ID.Name)
	}
	if near := api.Closest(name, names); near != "" {
		return "; " + api.DidYouMean(near)
	}
	return ""
}

// suggestKind suggests a kind for an unknown one: the same name in another group, or a similar
// name in the same or another group.
func (x *Index) suggestKind(gk api.GroupKind) string {
	known := slices.AppendSeq(api.KnownKinds(), maps.Keys(x.versions))
	slices.SortFunc(known, func(a, b api.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	kinds := map[string]api.GroupKind{} // by name; one of the same group if there is one
	var all, siblings []string
	for _, k := range known {
		switch {
		case k.Group == "extensions": // no longer served
			continue
		case k.Group == gk.Group:
			siblings = append(siblings, k.Kind)
			kinds[k.Kind] = k
		case kinds[k.Kind].Empty():
			kinds[k.Kind] = k
		}
		all = append(all, k.Kind)
	}
	kind := gk.Kind
	if kinds[kind].Empty() {
		kind = cmp.Or(api.Closest(kind, siblings), api.Closest(kind, all))
	}
	if kinds[kind].Empty() {
		return ""
	}
	return "; " + api.DidYouMean(kinds[kind].String())
}

// kindOrder orders kinds by name; the group is ignored. It is the order of statuses and content
// hashes, not the order of application.
var kindOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// Sorted returns items in the canonical order of their objects: by rank of the kind, by group and
// version, by namespace and name. The sort is stable. Kinds without a rank come after all others.
func Sorted[T any](items []T, object func(T) *api.Object) []T {
	type keyed struct {
		rank       int
		kind, name string
		item       T
	}
	keys := make([]keyed, len(items))
	for i, item := range items {
		o := object(item)
		gvk := o.Content.GroupVersionKind()
		k := keyed{rank: slices.Index(kindOrder, gvk.Kind), kind: gvk.GroupVersion().String(), name: o.ID.Namespace + "/" + o.ID.Name, item: item}
		if k.rank < 0 {
			k.rank, k.kind = len(kindOrder), gvk.String()
		}
		keys[i] = k
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	out := make([]T, len(items))
	for i := range keys {
		out[i] = keys[i].item
	}
	return out
}
