package placement

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Index answers which objects there are of a kind, in a namespace, of a
// name. It is made once for the objects of a commit, never changes after that,
// and may be read from any goroutine.
type Index struct {
	entries []entry // in canonical order
	// names finds one object, places all objects of a kind in a namespace (or
	// in none), spaces all contents of a namespace. All lists ascend.
	names    map[nameKey]int
	places   map[placeKey][]int
	spaces   map[string][]int
	versions map[api.GroupKind][]string
}

type entry struct {
	object *api.Object
	gvk    schema.GroupVersionKind
	labels labels.Set
	// refused is why no placement may have this object; empty if it may.
	refused string
	// denied says that its kind is on the list of kinds that stay at home.
	denied bool
}

type placeKey struct {
	gvk       schema.GroupVersionKind
	namespace string
}

type nameKey struct {
	placeKey
	name string
}

// NewIndex returns the index of the objects, of which no ID occurs twice.
// Neither the list nor the objects are changed, and the order of the list does
// not matter.
func NewIndex(objects []*api.Object) *Index {
	x := &Index{
		names:    make(map[nameKey]int, len(objects)),
		places:   map[placeKey][]int{},
		spaces:   map[string][]int{},
		versions: map[api.GroupKind][]string{},
	}
	services := map[string]bool{}
	for _, o := range sorted(objects) {
		gvk := o.Object.GroupVersionKind()
		if gvk == serviceKind {
			services[o.ID.Namespace+"/"+o.ID.Name] = true
		}
		x.add(entry{object: o, gvk: gvk, labels: o.Object.GetLabels(), denied: stayAtHome(gvk)})
	}
	for i := range x.entries {
		x.entries[i].refused = refuse(x.entries[i].object.Object, x.entries[i].gvk, services)
	}
	return x
}

func (x *Index) add(e entry) {
	at := len(x.entries)
	x.entries = append(x.entries, e)
	place := placeKey{e.gvk, e.object.ID.Namespace}
	x.names[nameKey{place, e.object.ID.Name}] = at
	x.places[place] = append(x.places[place], at)
	if place.namespace != "" {
		x.spaces[place.namespace] = append(x.spaces[place.namespace], at)
	}
	gk := e.gvk.GroupKind()
	if !slices.Contains(x.versions[gk], e.gvk.Version) {
		x.versions[gk] = append(x.versions[gk], e.gvk.Version)
		slices.Sort(x.versions[gk])
	}
}

// scope guesses from the objects whether a kind is namespaced.
func (x *Index) scope(gk api.GroupKind) (namespaced, known bool) {
	for _, version := range x.versions[gk] {
		if len(x.places[placeKey{gk.WithVersion(version), ""}]) > 0 {
			return false, true
		}
		known = true
	}
	return known, known
}

// sorted returns the objects in canonical order: by rank of their kind, by
// group and version, by namespace and name.
func sorted(objects []*api.Object) []*api.Object {
	type keyed struct {
		rank         int
		kind, object string
		o            *api.Object
	}
	keys := make([]keyed, len(objects))
	for i, o := range objects {
		gvk := o.Object.GroupVersionKind()
		k := keyed{rank: kindRank(gvk.Kind), object: o.ID.Namespace + "/" + o.ID.Name, o: o}
		if k.kind = gvk.GroupVersion().String(); k.rank == len(kindOrder) {
			k.kind = gvk.String()
		}
		keys[i] = k
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.kind, b.kind), strings.Compare(a.object, b.object))
	})
	out := make([]*api.Object, len(keys))
	for i, k := range keys {
		out[i] = k.o
	}
	return out
}

// kindOrder ranks kinds by their name alone; the group is ignored. It is the
// order of a status and of a content hash, not the order of application.
var kindOrder = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

var kindRanks = func() map[string]int {
	ranks := map[string]int{}
	for i, kind := range kindOrder {
		ranks[kind] = i
	}
	return ranks
}()

// kindRank returns the rank of a kind; those without one come after all others.
func kindRank(kind string) int {
	if rank, ok := kindRanks[kind]; ok {
		return rank
	}
	return len(kindOrder)
}
