package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Leave returns the object to apply if the fields at these JSON pointers shall keep their live
// values, or stay unset. It returns desired itself if no field has to be left.
//
// Fields that only gitfleet owns are sent with their live values, because the server would remove
// them otherwise; those of others are not sent. Below a value that the server replaces as a whole,
// such as an atomic list, all of them are sent with their live values. If the result is right only
// for this live object, it has its resourceVersion: the server refuses it once somebody else has
// written.
//
// What does not exist is created with the values of the hub: an object (live is nil), a list item,
// or a map of which the hub sets more than fields to leave. The error is an *UnclearError.
func Leave(desired, live *unstructured.Unstructured, pointers []string, manager string) (*unstructured.Unstructured, error) {
	if live == nil || len(pointers) == 0 {
		return desired, nil
	}
	out, l := desired.DeepCopy(), leaver{}
	l.fields(out.Object, live.Object, ownership(live.GetManagedFields(), manager), leftAt(pointers), "")
	if len(l.unclear) > 0 {
		slices.Sort(l.unclear)
		return nil, &UnclearError{l.unclear}
	}
	if l.dependent {
		out.SetResourceVersion(live.GetResourceVersion())
	}
	return out, nil
}

// Keep returns a copy of desired with the values of live at these JSON pointers, whoever owns
// them. A list item whose counterpart in live is not clear is compared by its index.
func Keep(desired, live *unstructured.Unstructured, pointers []string) *unstructured.Unstructured {
	out := desired.DeepCopy()
	keep(out.Object, live.Object, ownership(live.GetManagedFields(), api.FieldManager), pointers)
	return out
}

// keep is Keep for the fields of an object, which it changes.
func keep(desired, live map[string]any, o owned, pointers []string) {
	o.atomic = true // so that all values are those of live
	l := leaver{byIndex: true}
	l.fields(desired, live, o, leftAt(pointers), "")
}

// An UnclearError says that the live values of fields cannot be carried over, since it is not
// clear which items of a list they are in.
type UnclearError struct {
	// Fields are JSON pointers into the desired object.
	Fields []string
}

func (e *UnclearError) Error() string {
	return fmt.Sprintf("%s: the field is left to others (%s) and is within a list that the API server replaces as a whole, "+
		"and it is not clear which item of the live list it belongs to, as Git and the cluster have different items; "+
		"change the items that are there in one commit, and add, remove or rename items in another, or take the field out of the annotation",
		strings.Join(e.Fields, ", "), api.IgnoreFieldsAnnotation)
}

// A leaver replaces the fields of an object that are left to others.
type leaver struct {
	// byIndex says that an item whose counterpart is not clear has the one with its index.
	byIndex bool
	// dependent says that another live object would have to be sent with other values.
	dependent bool
	// unclear are the fields within items whose counterparts are not clear.
	unclear []string
}

// fields replaces fields of want, which it changes.
func (l *leaver) fields(want, have map[string]any, o owned, left *left, path string) {
	for key, part := range left.parts {
		l.field(want, have, key, o, part, path+"/"+api.EscapeKey(key))
	}
}

func (l *leaver) field(want, have map[string]any, key string, o owned, left *left, path string) {
	e, there := name(key), have[key]
	l.dependent = l.dependent || o.indivisible() || there != nil && holds(o.ours, e)
	switch {
	case there == nil && left.all(want[key]):
		delete(want, key)
	case there == nil:
		l.dependent = l.dependent || want[key] != nil
	case left.whole && o.indivisible():
		want[key] = runtime.DeepCopyJSONValue(there)
	case left.whole:
		if want[key] = o.share(e, there); want[key] == nil {
			delete(want, key)
		}
	case want[key] != nil:
		if want[key] = l.value(want[key], there, o.descend(e), left, path); emptyList(want[key]) && !emptyList(there) && !o.onlyOurItem(e) {
			delete(want, key) // only others own it
		}
	case o.indivisible() || !o.descend(e).atomic || o.onlyOurs(e):
		// The hub does not set a map of which a part is left.
		if there, ok := there.(map[string]any); ok {
			parts, below := map[string]any{}, o.descend(e)
			below.atomic = below.atomic || o.onlyOurs(e) // The server would also remove what nobody owns.
			if l.fields(parts, there, below, left, path); len(parts) > 0 || o.onlyOurItem(e) && left.in(there) {
				want[key] = parts
			}
		}
	}
}

func emptyList(v any) bool {
	items, ok := v.([]any)
	return ok && len(items) == 0
}

// value returns a value with replaced parts. It changes want.
func (l *leaver) value(want, have any, o owned, left *left, path string) any {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			l.fields(want, have, o, left, path)
		}
	case []any:
		if have, ok := have.([]any); ok {
			return l.items(want, have, o, left, path)
		}
	}
	return want
}

// items returns a list with replaced items. Those of want that have no counterpart are new, and
// are not replaced.
func (l *leaver) items(want, have []any, o owned, left *left, path string) []any {
	m, out := o.merging(), make([]any, 0, len(want))
	var found []int
	if m.keys == nil && !m.set {
		found = counterparts(want, have, left)
	}
	for i, item := range want {
		part, at := left.item(i), path+"/"+strconv.Itoa(i)
		e := m.element(i, item)
		var there any
		l.dependent = l.dependent || part != nil
		switch {
		case part == nil:
		case found == nil:
			there = element(have, e)
		case found[i] >= 0:
			there = have[found[i]]
		case found[i] == unclear && !l.byIndex:
			l.unclear = append(l.unclear, part.pointers(at)...)
		case found[i] == unclear && i < len(have):
			there = have[i]
		}
		switch {
		case there == nil:
			out = append(out, item)
		case !part.whole:
			out = append(out, l.value(item, there, o.descend(e), part, at))
		case o.indivisible():
			out = append(out, runtime.DeepCopyJSONValue(there))
		default:
			if ours := o.share(e, there); ours != nil {
				out = append(out, ours)
			}
		}
	}
	return out
}

// indivisible reports whether the server may replace the value at this position as a whole: it
// is owned so, or nobody owns anything of it.
func (o owned) indivisible() bool { return o.atomic || o.all.Empty() }

// share returns a copy of the part of a value that only gitfleet owns, with its merge keys; nil
// if there is none.
func (o owned) share(e fieldpath.PathElement, part any) any {
	switch {
	case !holds(o.ours, e):
		return nil
	case !holds(o.others, e):
		return runtime.DeepCopyJSONValue(part)
	}
	shared := o.descend(e)
	switch part := part.(type) {
	case map[string]any:
		ours := map[string]any{}
		for key, field := range part {
			if s := shared.share(name(key), field); s != nil {
				ours[key] = s
			}
		}
		if len(ours) == 0 && !o.onlyOurItem(e) {
			return nil
		}
		if e.Key != nil {
			for _, f := range *e.Key {
				if value, ok := part[f.Name]; ok {
					ours[f.Name] = value
				}
			}
		}
		return ours
	case []any:
		ours := []any{}
		m := shared.merging()
		for i, item := range part {
			if s := shared.share(m.element(i, item), item); s != nil {
				ours = append(ours, s)
			}
		}
		if len(ours) == 0 && !o.onlyOurItem(e) {
			return nil
		}
		return ours
	default:
		return nil
	}
}
