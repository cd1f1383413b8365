package hub

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// identity reads the name and namespace of an object.
func identity(r *document.Report, object map[string]any) (name, namespace string, ok bool) {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap && object["metadata"] != nil {
		r.Errorf(r.Field("metadata"), "must be a mapping, not %s", document.Describe(object["metadata"]))
		return "", "", false
	}
	name, ok = nameIn(r, metadata, "name")
	namespace, ok2 := nameIn(r, metadata, "namespace")
	switch {
	case !ok || name != "":
	case metadata["generateName"] != nil:
		r.Errorf(r.Field("metadata", "generateName"), "objects with only generate name are not supported; write metadata.name")
		ok = false
	default:
		r.Errorf(r.Field("metadata", "name"), "missing; give the object a name")
		ok = false
	}
	isTextMap(r, metadata["labels"], r.Field("metadata", "labels"))
	isTextMap(r, metadata["annotations"], r.Field("metadata", "annotations"))
	return name, namespace, ok && ok2
}

func nameIn(r *document.Report, metadata map[string]any, key string) (string, bool) {
	field := r.Field("metadata", key)
	switch v := metadata[key].(type) {
	case nil:
		return "", true
	case string:
		for _, msg := range content.IsPathSegmentName(v) {
			r.Errorf(field, "%q is not a valid name: it %s", v, msg)
			return "", false
		}
		if strings.ContainsFunc(v, unicode.IsControl) {
			r.Errorf(field, "%q is not a valid name: it contains control characters", v)
			return "", false
		}
		return v, true
	default:
		r.Errorf(field, "must be a string, not %s; put it in quotes", document.Describe(v))
		return "", false
	}
}

// isTextMap reports whether a field is a mapping of strings, or missing.
func isTextMap(r *document.Report, value any, p *document.FieldPath) bool {
	m, isMap := value.(map[string]any)
	if !isMap && value != nil {
		r.Errorf(p, "must be a mapping, not %s", document.Describe(value))
		return false
	}
	ok := true
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if _, isString := m[key].(string); !isString {
			ok = false
			r.Errorf(p.Child(key), "must be a string, not %s; put it in quotes", document.Describe(m[key]))
		}
	}
	return ok
}

// checkBuiltinScope compares the namespace of an object with the scope of its kind, if the kind
// is built in.
func checkBuiltinScope(r *document.Report, it *item, object map[string]any) bool {
	namespaced, known := api.Namespaced(it.id.GroupKind())
	it.custom = !known
	switch {
	case known && namespaced && it.id.Namespace == "":
		r.Errorf(r.Field("metadata", "namespace"), needsNamespace, it.id.Kind)
		return false
	case known && !namespaced && it.id.Namespace != "":
		if !it.built() {
			r.Warnf(r.Field("metadata", "namespace"), dropsNamespace, it.id.Kind)
		}
		delete(object["metadata"].(map[string]any), "namespace")
		it.id.Namespace = ""
	}
	return true
}

const (
	needsNamespace = "missing: a %s is namespaced; write the namespace"
	dropsNamespace = "a %s is cluster-scoped; this is ignored, remove it"
)
