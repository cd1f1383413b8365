package diff

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Leave returns what to apply so that the fields at these JSON pointers are
// left alone. A field that someone besides manager owns is not sent at all; one
// that nobody else owns is sent as it is, because no longer sending it would
// remove it. An object that does not exist yet, live being nil, is created
// with the value from the hub. Desired itself is returned if nothing changes.
func Leave(desired, live *unstructured.Unstructured, pointers []string, manager string) *unstructured.Unstructured {
	if live == nil || len(pointers) == 0 {
		return desired
	}
	out := desired.DeepCopy()
	o := ownership(live.GetManagedFields(), manager)
	for _, pointer := range pointers {
		leave(out.Object, live.Object, o, segments(pointer))
	}
	return out
}

func leave(desired, live any, o owned, path []string) {
	key, rest := path[0], path[1:]
	switch d := desired.(type) {
	case map[string]any:
		there, exists := field(live, key)
		switch _, wanted := d[key]; {
		case !wanted:
		case len(rest) > 0:
			leave(d[key], there, o.at(name(key)), rest)
		case exists && !holds(o.others, name(key)):
			d[key] = runtime.DeepCopyJSONValue(there)
		default:
			delete(d, key)
		}
	case []any:
		i, ok := index(key, len(d))
		if !ok || len(rest) == 0 {
			return // an item is not a field; leaving out one would shift the others
		}
		e := o.element(i, d[i]) // by key, if the list has one
		leave(d[i], element(live, e), o.at(e), rest)
	}
}

// index reads an index of a list of n items.
func index(key string, n int) (i int, ok bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && i < n
}

func field(v any, key string) (value any, ok bool) {
	m, _ := v.(map[string]any)
	value, ok = m[key]
	return value, ok
}
