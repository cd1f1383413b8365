package diff

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Normalize converts an object to the form in which an API server stores it, so that hashes,
// ownership and comparisons refer to the same fields: the stringData of a Secret becomes data,
// and data becomes canonical base64. Invalid data is kept, so that the server refuses it. Fields
// that belong to controllers are left out, and so are fields of Kubernetes' own kinds that are null.
// The result shares all other fields with the object, and is the object itself if nothing changes.
func Normalize(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = controllers.Strip(o)
	if api.BuiltInGroup(o.GroupVersionKind().Group) {
		if fields, changed := withoutNulls(o.Object, ""); changed {
			o = &unstructured.Unstructured{Object: fields.(map[string]any)}
		}
	}
	if !isSecret(o.Object) {
		return o
	}
	data, ok := texts(o.Object["data"])
	written, okWritten := texts(o.Object["stringData"])
	if !ok || !okWritten {
		return o
	}
	merged := make(map[string]any, len(data)+len(written))
	same := len(written) == 0
	for key, value := range data {
		merged[key] = canonical(value)
		same = same && merged[key] == value
	}
	if same {
		return o
	}
	for key, value := range written {
		merged[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	normal := maps.Clone(o.Object)
	delete(normal, "stringData")
	normal["data"] = merged
	return &unstructured.Unstructured{Object: normal}
}

// withoutNulls returns a value without the fields that are null, and whether it had any. A null field is
// not set, but an apply of it owns the field, and so keeps what a server has set in it before: a
// probe that becomes null would stay, with its defaults and without its handler. Keys that users choose
// and schemas stay as they are.
func withoutNulls(v any, key string) (any, bool) {
	if keyValueFields[key] || key == "stringData" || key == "openAPIV3Schema" {
		return v, false
	}
	switch v := v.(type) {
	case map[string]any:
		var fields map[string]any // a copy, once there is a difference
		for name, field := range v {
			kept, changed := withoutNulls(field, name)
			if field != nil && !changed {
				continue
			}
			if fields == nil {
				fields = maps.Clone(v)
			}
			if fields[name] = kept; field == nil {
				delete(fields, name)
			}
		}
		if fields != nil {
			return fields, true
		}
	case []any:
		var items []any
		for i, item := range v {
			kept, changed := withoutNulls(item, "")
			if !changed {
				continue
			}
			if items == nil {
				items = slices.Clone(v)
			}
			items[i] = kept
		}
		if items != nil {
			return items, true
		}
	}
	return v, false
}

// texts returns a map of strings; ok is false for another type. Null is an empty map, and a
// null value the empty string.
func texts(v any) (pairs map[string]string, ok bool) {
	if v == nil {
		return nil, true
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	pairs = make(map[string]string, len(m))
	for key, value := range m {
		switch value := value.(type) {
		case string:
			pairs[key] = value
		case nil:
			pairs[key] = ""
		default:
			return nil, false
		}
	}
	return pairs, true
}

// canonical returns base64 on one line, as a server writes it.
func canonical(encoded string) string {
	clear, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return encoded
	}
	return base64.StdEncoding.EncodeToString(clear)
}
