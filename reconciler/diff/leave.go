package diff

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Leave returns the object to apply if the fields at these JSON pointers shall keep their live
// values. Fields that only gitfleet owns are sent with their live values, because the server
// would remove them otherwise; the rest are not sent. An object that does not exist (live is
// nil) is created with the values of the hub. Leave returns desired itself if no field has to
// be left.
func Leave(desired, live *unstructured.Unstructured, pointers []string, manager string) *unstructured.Unstructured {
	if live == nil || len(pointers) == 0 {
		return desired
	}
	out := desired.DeepCopy()
	o := ownership(live.GetManagedFields(), manager)
	for _, pointer := range pointers {
		leave(out.Object, live.Object, o, api.SplitPointer(pointer))
	}
	return out
}

func leave(desired, live any, o owned, path []string) {
	key, rest := path[0], path[1:]
	switch d := desired.(type) {
	case map[string]any:
		if _, wanted := d[key]; !wanted {
			return
		}
		there, e := field(live, key), name(key)
		if len(rest) > 0 {
			leave(d[key], there, o.descend(e), rest)
		} else if ours := o.share(e, there); ours != nil {
			d[key] = ours
		} else {
			delete(d, key)
		}
	case []any:
		i, ok := index(key, len(d))
		if !ok || len(rest) == 0 {
			return // an item is not a field: leaving it out would shift the others
		}
		e := o.merging().element(i, d[i]) // by key, if the list has keys
		leave(d[i], element(live, e), o.descend(e), rest)
	}
}

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
		if len(ours) == 0 {
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
		var ours []any
		m := shared.merging()
		for i, item := range part {
			if s := shared.share(m.element(i, item), item); s != nil {
				ours = append(ours, s)
			}
		}
		if ours == nil {
			return nil
		}
		return ours
	default:
		return nil
	}
}

// index parses an index of a list of n items.
func index(key string, n int) (i int, ok bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && i < n
}

// field returns a field of a map, or nil.
func field(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}
