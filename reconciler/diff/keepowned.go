package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// KeepOwned returns the object to apply if fields that it leaves to others keep their live values,
// although manager still owns them: the server would remove them from live otherwise, before the
// other writer has set them. The fields are those that belong to controllers, and those at some
// JSON pointers. The result is normalized otherwise.
func KeepOwned(desired, live *unstructured.Unstructured, pointers []string, manager string) *unstructured.Unstructured {
	o := ownership(live.GetManagedFields(), manager)
	paths := make([][]string, 0, len(pointers))
	for _, pointer := range pointers {
		paths = append(paths, api.SplitPointer(pointer))
	}
	controllers.Each(desired, func(_ *controllers.Field, path []string, value any) {
		paths = append(paths, path)
	})
	out := Normalize(desired)
	if len(paths) > 0 {
		out = out.DeepCopy()
	}
	for _, path := range paths {
		keepOwned(out.Object, live.Object, o, path)
	}
	return out
}

// keepOwned adds a field to desired, if it has everything above the field.
func keepOwned(desired, live any, o owned, path []string) {
	key, rest := path[0], path[1:]
	switch d := desired.(type) {
	case map[string]any:
		there, e := field(live, key), name(key)
		if below, sets := d[key]; len(rest) > 0 {
			keepOwned(below, there, o.descend(e), rest)
		} else if ours := o.share(e, there); !sets && ours != nil {
			d[key] = ours
		}
	case []any:
		if i, ok := index(key, len(d)); ok && len(rest) > 0 {
			e := o.merging().element(i, d[i])
			keepOwned(d[i], element(live, e), o.descend(e), rest)
		}
	}
}

// OwnsAlone reports whether manager owns the field at a path of a live object, and nobody else
// does: the server removes it, or sets its default, once manager no longer applies it.
func OwnsAlone(live *unstructured.Unstructured, manager string, path ...string) bool {
	o := ownership(live.GetManagedFields(), manager)
	for _, key := range path[:len(path)-1] {
		o = o.descend(name(key))
	}
	return o.onlyOurs(name(path[len(path)-1]))
}
