package diff

import (
	"encoding/base64"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Normalize converts an object to the form in which an API server stores it, so that hashes,
// ownership and comparisons refer to the same fields: the stringData of a Secret becomes data,
// and data becomes canonical base64. Invalid data is kept, so that the server refuses it. Fields
// that belong to controllers are left out. The result shares all other fields with the object, and
// is the object itself if nothing changes.
func Normalize(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = controllers.Strip(o)
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
