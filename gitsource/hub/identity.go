package hub

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/gitfleet/gitfleet/placement/api"
)

// identity reads the name and namespace of an object.
func identity(r *report, object map[string]any) (name, namespace string, ok bool) {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		if object["metadata"] != nil {
			r.errorf(r.field("metadata"), "must be a mapping, not %s", describe(object["metadata"]))
		} else {
			r.errorf(r.field("metadata", "name"), "missing; give the object a name")
		}
		return "", "", false
	}
	name, ok = nameIn(r, metadata, "name")
	namespace, ok2 := nameIn(r, metadata, "namespace")
	if ok && name == "" {
		ok = false
		if metadata["generateName"] != nil {
			r.errorf(r.field("metadata", "generateName"), "objects with only generate name are not supported; write metadata.name")
		} else {
			r.errorf(r.field("metadata", "name"), "missing; give the object a name")
		}
	}
	stringMap(r, metadata, "labels")
	stringMap(r, metadata, "annotations")
	return name, namespace, ok && ok2
}

func nameIn(r *report, metadata map[string]any, key string) (string, bool) {
	field := r.field("metadata", key)
	switch v := metadata[key].(type) {
	case nil:
		return "", true
	case string:
		for _, msg := range content.IsPathSegmentName(v) {
			r.errorf(field, "%q is no name: it %s", v, msg)
			return "", false
		}
		if strings.ContainsFunc(v, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
			r.errorf(field, "%q is no name: it has blanks or unprintable letters", v)
			return "", false
		}
		return v, true
	default:
		r.errorf(field, "must be a string, not %s; put it in quotes", describe(v))
		return "", false
	}
}

func stringMap(r *report, metadata map[string]any, key string) {
	switch m := metadata[key].(type) {
	case nil:
	case map[string]any:
		allStrings(r, m, r.field("metadata", key))
	default:
		r.errorf(r.field("metadata", key), "must be a mapping, not %s", describe(m))
	}
}

// allStrings validates a mapping of strings, in the order of its keys.
func allStrings(r *report, m map[string]any, p *fieldPath) bool {
	ok := true
	for _, key := range sortedKeys(m) {
		if _, isString := m[key].(string); !isString {
			ok = false
			r.errorf(p.child(key), "must be a string, not %s; put it in quotes", describe(m[key]))
		}
	}
	return ok
}

// scopeFits compares the namespace of an object with the scope of its kind, if the kind is
// built in.
func scopeFits(r *report, it *item, object map[string]any) bool {
	namespaced, known := api.Namespaced(it.id.GroupKind())
	it.custom = !known
	switch {
	case known && namespaced && it.id.Namespace == "":
		r.errorf(r.field("metadata", "namespace"), needsNamespace, it.id.Kind)
		return false
	case known && !namespaced && it.id.Namespace != "":
		if !it.built() {
			r.warnf(r.field("metadata", "namespace"), dropsNamespace, it.id.Kind)
		}
		delete(object["metadata"].(map[string]any), "namespace")
		it.id.Namespace = ""
	}
	return true
}

const (
	needsNamespace = "missing: a %s lives in a namespace, and none is assumed; write it"
	dropsNamespace = "a %s lives in no namespace; this is ignored, remove it"
)
