package diff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Extended is a live object to which others may have added something.
type Extended struct {
	Manifest, Live *unstructured.Unstructured
	// Entries are the managedFields of Live, and Manager is the field manager that has applied Manifest.
	Entries []metav1.ManagedFieldsEntry
	Manager string
	// Since is the time from which others may have added something. What was there before, such as in
	// an object that was taken over, is no addition. Writes of Known count too, whenever they were.
	Since time.Time
	Known []api.Actor
	// Left are fields of the live object that Git has removed. They are no additions.
	Left Left
}

// Additions lists what others have added to a live object beside what the manifest sets, and who did
// it, in the order of the paths. Paths are those in the manifest, which end with "-" for a new item of a list;
// of what is in an item that the manifest does not have, they are those in the live object. Listed are items of lists with keys, such as a container or a variable; lists that
// the manifest does not set, such as the subjects of a RoleBinding; keys of the data of a ConfigMap or
// Secret; and labels. Other fields do not count, such as defaults and annotations.
//
// The evidence is managedFields: an addition belongs to a field manager that has written it to the
// object itself. So what an admission webhook adds, which belongs to nobody, does not count, and neither
// does what a controller of Kubernetes or one of controllers.Adders has written. Fields that the manifest
// leaves to others do not count. Values of Secrets are masked.
func Additions(x Extended) []api.Difference {
	var out []api.Difference
	for _, a := range additions(x) {
		out = append(out, a.Difference)
	}
	return out
}

// WithoutAdditions returns a JSON patch of the live object that removes what Additions lists, and nothing else. It fails
// with a conflict if the object has been changed since it was read.
func WithoutAdditions(x Extended) ([]byte, error) {
	found := additions(x)
	slices.SortFunc(found, func(a, b addition) int { return comparePointers(b.at, a.at) }) // the last item of a list first
	var patch []map[string]any
	for _, a := range found {
		patch = append(patch, map[string]any{"op": "remove", "path": a.at})
	}
	return json.Marshal(append(patch, unchangedSince(x.Live)))
}

// comparePointers orders JSON pointers by their elements, and indexes by their numbers.
func comparePointers(a, b string) int {
	return slices.CompareFunc(api.SplitPointer(a), api.SplitPointer(b), func(x, y string) int {
		i, errI := strconv.Atoi(x)
		j, errJ := strconv.Atoi(y)
		if errI == nil && errJ == nil {
			return cmp.Compare(i, j)
		}
		return strings.Compare(x, y)
	})
}

// An addition is something that others have added, with its pointer in the live object.
type addition struct {
	api.Difference
	at string
}

// additions is Additions with the pointers.
func additions(x Extended) []addition {
	writers := slices.DeleteFunc(slices.Clone(x.Entries), func(e metav1.ManagedFieldsEntry) bool { return !x.counts(&e, x.Live.GroupVersionKind().Group) })
	if len(writers) == 0 || entryOf(x.Entries, x.Manager) == nil {
		return nil
	}
	ours := fieldsOf(entryOf(x.Entries, x.Manager))
	kind := x.Live.GroupVersionKind().GroupKind()
	hasData := kind == api.GroupKind{Kind: "ConfigMap"} || kind == api.GroupKind{Kind: "Secret"}
	found := fieldpath.NewSet()
	sets := make([]*fieldpath.Set, len(writers))
	for i := range writers {
		sets[i] = fieldsOf(&writers[i])
		found = found.Union(addedBy(hasData, sets[i], ours))
	}
	if found.Empty() {
		return nil
	}
	manifest := Normalize(x.Manifest)
	left := x.leftToOthers(manifest)
	shown := redacted(x.Live.Object, SecretsOf(manifest, x.Live))
	var changes []change
	var list []api.Difference
	var pointers []string
	found.Iterate(func(path fieldpath.Path) {
		at, value, there := locate(x.Live.Object, path)
		_, wanted, set := locate(manifest.Object, path)
		if !there || set && wanted != nil || hasAbove(found, path) || !isAddition(path, value) || fillsPlaceholder(manifest, path) || left(at, path) {
			return
		}
		_, visible, _ := locate(shown, path)
		c := change{op: add, path: pathInGit(manifest.Object, path, at), member: side{value, visible}}
		d := api.Difference{PatchDetail: c.detail()}
		for i := range writers {
			if sets[i].Has(path) {
				d.By = append(d.By, actor(&writers[i]))
			}
		}
		d.By = newest(d.By)
		changes, list, pointers = append(changes, c), append(list, d), append(pointers, at)
	})
	exact(changes, list)
	out := make([]addition, len(list))
	for i := range list {
		out[i] = addition{list[i], pointers[i]}
	}
	slices.SortStableFunc(out, func(a, b addition) int { return strings.Compare(a.Path, b.Path) })
	return out[:min(len(out), Limit)]
}

// MayBeExtended reports whether others may have added something to an object of a group since a manager
// last applied it, as its managedFields show. It is asked about every observed object.
func MayBeExtended(entries []metav1.ManagedFieldsEntry, manager, group string) bool {
	x := Extended{Manager: manager, Since: AppliedAt(entries, manager)}
	var ours *fieldpath.Set
	for i := range entries {
		if !x.counts(&entries[i], group) {
			continue
		}
		if ours == nil {
			own := entryOf(entries, manager)
			if own == nil {
				return false
			}
			ours = fieldsOf(own)
		}
		if !addedBy(true, fieldsOf(&entries[i]), ours).Empty() {
			return true
		}
	}
	return false
}

// counts reports whether the fields of an entry in managedFields may be additions: somebody has written
// them to the object itself, who is no controller that does so by contract.
func (x *Extended) counts(e *metav1.ManagedFieldsEntry, group string) bool {
	switch {
	case e.Subresource != "" || controlPlane[e.Manager] || strings.HasPrefix(e.Manager, x.Manager) || controllers.AddsByContract(e.Manager):
		return false
	case (!api.BuiltInGroup(group) || group == "admissionregistration.k8s.io") && !strings.HasPrefix(e.Manager, "kubectl"):
		return false // operators extend their own resources, and the configurations of their webhooks
	}
	return e.Time == nil || !e.Time.Time.Before(x.Since.Truncate(time.Second)) || x.knows(actor(e))
}

// knows reports whether somebody's last write is known to have added something.
func (x *Extended) knows(a api.Actor) bool {
	return slices.ContainsFunc(x.Known, func(k api.Actor) bool { return k.String() == a.String() && k.Time.Equal(a.Time) })
}

// addedBy returns the fields of a set that may be additions, without those below them: items of lists,
// keys of maps that have data or labels, and fields that are owned as a whole. hasData says that the
// object has data with keys.
func addedBy(hasData bool, theirs, ours *fieldpath.Set) *fieldpath.Set {
	found := fieldpath.NewSet()
	var walk func(above fieldpath.Path, theirs, ours *fieldpath.Set)
	walk = func(above fieldpath.Path, theirs, ours *fieldpath.Set) {
		visit := func(e fieldpath.PathElement) {
			path := append(slices.Clone(above), e)
			if !mayHaveAdditions(path, hasData) {
				return
			}
			below := child(theirs, e)
			switch whole := e.FieldName == nil || below.Empty(); {
			case whole && theirs.Members.Has(e) && !holds(ours, e):
				found.Insert(path)
			default:
				walk(path, below, child(ours, e))
			}
		}
		theirs.Members.Iterate(visit)
		theirs.Children.Iterate(visit)
	}
	walk(nil, theirs, ours)
	return found
}

// mayHaveAdditions reports whether a field, or what is in it, may be an addition.
func mayHaveAdditions(path fieldpath.Path, hasData bool) bool {
	n := len(path) - 1
	if path[n].FieldName == nil {
		return path[n].Index == nil
	}
	field := *path[n].FieldName
	switch {
	case n == 0:
		return field != "status" && (hasData || !dataFields[field])
	case path[n-1].FieldName != nil && *path[n-1].FieldName == "metadata":
		return field == "labels"
	}
	return true
}

// isAddition reports whether a value that somebody has added counts: an item, a list, or a key of data or
// labels.
func isAddition(path fieldpath.Path, value any) bool {
	n := len(path) - 1
	field, key := "", ""
	if n > 0 && path[n-1].FieldName != nil {
		field = *path[n-1].FieldName
	}
	if path[n].FieldName == nil {
		key, _ = partOf(value, name("name")).(string)
		return !controllers.AddedByContract(field, key)
	}
	key = *path[n].FieldName
	if items, isList := value.([]any); isList {
		return len(items) > 0
	}
	switch {
	case n == 1 && dataFields[field]:
		return true
	case field == "labels" && path[n-2].FieldName != nil && *path[n-2].FieldName == "metadata":
		return !strings.Contains(key, "gitfleet.dev/") && !strings.Contains(key, "kubernetes-fleet.io/") && !controllers.AddedByContract(field, key)
	}
	return false
}

// fillsPlaceholder reports whether a field is a key of an object that has no data in Git: whoever uses it fills it, such as
// an operator that keeps its certificate there.
func fillsPlaceholder(manifest *unstructured.Unstructured, path fieldpath.Path) bool {
	if path[0].FieldName == nil || !dataFields[*path[0].FieldName] {
		return false
	}
	for field := range dataFields {
		if data, _ := manifest.Object[field].(map[string]any); len(data) > 0 {
			return false
		}
	}
	return true
}

// hasAbove reports whether a set has something above a path.
func hasAbove(set *fieldpath.Set, path fieldpath.Path) bool {
	for n := 1; n < len(path); n++ {
		if set.Has(path[:n]) {
			return true
		}
	}
	return false
}

// leftToOthers returns a function that reports whether a field of the live object is left to others: by
// the annotation of the manifest, as it belongs to a controller, or since Git has removed it.
func (x *Extended) leftToOthers(manifest *unstructured.Unstructured) func(at string, path fieldpath.Path) bool {
	ignored, _ := IgnoredFields(manifest) // a malformed pointer matches nothing
	byControllers := controllers.Pointers(x.Live)
	removed := x.Left.Fields()
	if removed == nil {
		removed = fieldpath.NewSet()
	}
	within := func(at string, pointers []string) bool {
		return slices.ContainsFunc(pointers, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
	}
	return func(at string, path fieldpath.Path) bool {
		inGit, _ := pointerIn(manifest.Object, path)
		return removed.Has(path) || hasAbove(removed, path) || within(at, byControllers) || within(inGit, ignored)
	}
}

// pathInGit returns the path at which a manifest gets an addition, or else at, the path in the live object.
func pathInGit(manifest any, path fieldpath.Path, at string) string {
	n, end := len(path), ""
	if path[n-1].FieldName == nil {
		n, end = n-1, "/-"
	}
	if pointer, whole := pointerIn(manifest, path[:n]); whole {
		return pointer + end
	}
	return at
}

// pointerIn returns a path as a JSON pointer into a value, as far as that has its items; whole says that it
// has all.
func pointerIn(v any, path fieldpath.Path) (pointer string, whole bool) {
	for n := range path {
		if path[n].FieldName != nil {
			pointer += "/" + api.EscapeKey(*path[n].FieldName)
			continue
		}
		at, _, there := locate(v, path[:n+1])
		if !there {
			return pointer, false
		}
		pointer = at
	}
	return pointer, true
}
