package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Who returns the actors because of whom a live object differs from what manager applied: the
// owners of the fields that differ. If nobody owns them, for instance because a field was
// removed, it returns everybody who wrote to the object since the last apply. The newest is
// first. The result may be empty, since the server drops managers that own nothing.
func Who(live *unstructured.Unstructured, manager string, since time.Time, details []api.PatchDetail) []api.Actor {
	return who(writersOf(live, manager), live, since, details)
}

// A writer has written to an object, and owns fields of it.
type writer struct {
	api.Actor
	fields *fieldpath.Set
}

// writersOf returns the writers of a live object, other than manager with its applies, and without those of its status.
func writersOf(live *unstructured.Unstructured, manager string) []writer {
	var all []writer
	entries := live.GetManagedFields()
	for i := range entries {
		if e := &entries[i]; !applied(e, manager) && e.Subresource != "status" {
			all = append(all, writer{actor(e), fieldsOf(e)})
		}
	}
	return all
}

// maxActors is how many actors a result names. An object may have any number of field managers.
const maxActors = 20

func who(all []writer, live *unstructured.Unstructured, since time.Time, details []api.PatchDetail) []api.Actor {
	var owners, writers []api.Actor
	for _, w := range all {
		if ownsAny(w.fields, live.Object, details) {
			owners = append(owners, w.Actor)
		}
		if !w.Time.Before(since.Truncate(time.Second)) {
			writers = append(writers, w.Actor)
		}
	}
	if owners == nil {
		owners = writers
	}
	return newest(owners)
}

// Differences returns the differences with the actors who made them; see Who.
func Differences(live *unstructured.Unstructured, manager string, details []api.PatchDetail) []api.Difference {
	var list []api.Difference
	for _, d := range details {
		list = append(list, api.Difference{PatchDetail: d})
	}
	if live == nil || len(details) == 0 {
		return list // nobody owns a missing field
	}
	since, writers := AppliedAt(live.GetManagedFields(), manager), writersOf(live, manager)
	for i := range list {
		list[i].By = who(writers, live, since, details[i:i+1])
	}
	return list
}

// UnderOwnName attributes differences to manager itself if nobody else made them and it owns
// the fields: somebody has applied under its name, or a webhook has changed what it applied.
func UnderOwnName(live *unstructured.Unstructured, manager string, list []api.Difference) []api.Difference {
	if live == nil {
		return list
	}
	e := entryOf(live.GetManagedFields(), manager)
	if e == nil {
		return list
	}
	own, list := fieldsOf(e), slices.Clone(list)
	for i, d := range list {
		if len(d.By) == 0 && ownsAny(own, live.Object, []api.PatchDetail{d.PatchDetail}) {
			list[i].By = []api.Actor{actor(e)}
		}
	}
	return list
}

// Since lists the actors who wrote to a live object since a manager last applied it, the newest
// first.
func Since(live *unstructured.Unstructured, manager string) []api.Actor {
	return Who(live, manager, AppliedAt(live.GetManagedFields(), manager), nil)
}

// Actors lists the actors of some differences, each once, the newest first.
func Actors(list []api.Difference) []api.Actor {
	var all []api.Actor
	seen := map[api.Actor]bool{}
	for _, d := range list {
		for _, a := range d.By {
			if !seen[a] {
				seen[a] = true
				all = append(all, a)
			}
		}
	}
	return newest(all)
}

// newest sorts actors, the newest first, and returns the first maxActors.
func newest(list []api.Actor) []api.Actor {
	slices.SortFunc(list, func(a, b api.Actor) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.String(), b.String()))
	})
	return list[:min(len(list), maxActors)]
}

// longestManager is the maximum length of the name of a field manager that an API server accepts, in bytes.
const longestManager = 128

// ManagerOf returns the field manager of an entry. A name that no API server accepts is cut off.
func ManagerOf(e *metav1.ManagedFieldsEntry) string { return cutName(e.Manager) }

func cutName(name string) string {
	if len(name) <= longestManager {
		return name
	}
	return strings.ToValidUTF8(name[:longestManager], "") + "…"
}

func actor(e *metav1.ManagedFieldsEntry) api.Actor {
	a := api.Actor{Manager: ManagerOf(e), Operation: cutName(string(e.Operation)), Subresource: cutName(e.Subresource)}
	if e.Time != nil {
		a.Time = e.Time.UTC()
	}
	return a
}

func ownsAny(set *fieldpath.Set, live any, details []api.PatchDetail) bool {
	return slices.ContainsFunc(details, func(d api.PatchDetail) bool { return owns(set, live, api.SplitPointer(d.Path)) })
}

// owns reports whether a set has the field at a path of a live value, something below it, or an
// atomic field above it.
func owns(set *fieldpath.Set, live any, path []string) bool {
	e, below := name(path[0]), any(nil)
	switch v := live.(type) {
	case map[string]any:
		below = v[path[0]]
	case []any:
		i, ok := index(path[0], len(v))
		if !ok {
			return path[0] == "-" // the last element of the path is "-": any item of the list counts
		}
		e, below = owned{all: set}.merging().element(i, v[i]), v[i]
	}
	sub := child(set, e)
	if len(path) == 1 || sub.Empty() {
		return holds(set, e)
	}
	return owns(sub, below, path[1:])
}

// A Rival owns a field that the hub also sets, through a subresource, or replicas as a controller of
// progressive delivery. Each of them would keep overwriting the other.
type Rival struct {
	Path  string // a JSON pointer into the live object
	Value string // the current value
	// Wanted is the value in the hub.
	Wanted string
	By     api.Actor
	// Autoscaler says that the owner is a controller that scales, and not a person.
	Autoscaler bool
}

// progressive are the field managers of controllers of progressive delivery. They scale a workload by an
// update of it: to zero while another one takes its traffic, and back.
var progressive = map[string]bool{"flagger": true, "rollouts-controller": true}

// Handover is the field manager of replicas that are left to an autoscaler and that nobody else owns.
const Handover = "gitfleet-handover"

// Rivals lists the fields that desired sets and that belong to a Rival in the live object, such as
// spec.replicas that were set through scale.
func Rivals(desired, live *unstructured.Unstructured) []Rival {
	var list []Rival
	entries := live.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		fields := fieldsOf(e)
		switch {
		case e.Subresource == "status" || e.Subresource == "" && !autoscaler(e):
			continue
		case e.Subresource == "":
			fields = fields.Intersection(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas")))
		}
		fields.Leaves().Iterate(func(path fieldpath.Path) {
			_, wanted, sets := locate(desired.Object, path)
			if pointer, value, ok := locate(live.Object, path); ok && sets {
				list = append(list, Rival{
					Path: pointer, Value: Text(value), Wanted: Text(wanted), By: actor(e), Autoscaler: autoscaler(e),
				})
			}
		})
	}
	slices.SortStableFunc(list, func(a, b Rival) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// HasReplicasOwner reports whether any manager owns spec.replicas. Nobody does once an object was scaled to zero: an API server does not
// record that.
func HasReplicasOwner(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 != nil && ownsField(e.FieldsV1.GetRawBytes(), "f:spec", "f:replicas")
	})
}

// Autoscaled reports whether a controller that scales owns fields.
func Autoscaled(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		if autoscaler(&entries[i]) {
			return true
		}
	}
	return false
}

// autoscaler distinguishes a controller from a person, since kubectl scale uses the same
// subresource as a HorizontalPodAutoscaler. Replicas that were handed over belong to an autoscaler.
func autoscaler(e *metav1.ManagedFieldsEntry) bool {
	if e.Subresource == "" {
		return (progressive[e.Manager] || e.Manager == Handover) && e.FieldsV1 != nil && ownsField(e.FieldsV1.GetRawBytes(), "f:spec", "f:replicas")
	}
	return e.Subresource == "scale" && !strings.HasPrefix(e.Manager, "kubectl")
}

// locate follows a path of owned fields, and returns it as a JSON pointer with its value.
func locate(v any, path fieldpath.Path) (pointer string, value any, ok bool) {
	for _, e := range path {
		switch in := v.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return "", nil, false
			}
			if v, ok = in[*e.FieldName]; !ok {
				return "", nil, false
			}
			pointer += "/" + api.EscapeKey(*e.FieldName)
		case []any:
			i := slices.IndexFunc(in, func(item any) bool { return selects(e, item) })
			if i < 0 {
				return "", nil, false
			}
			v, pointer = in[i], fmt.Sprintf("%s/%d", pointer, i)
		default:
			return "", nil, false
		}
	}
	return pointer, v, true
}
