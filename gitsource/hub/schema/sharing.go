package schema

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Sharing keeps equal parts of the schemas of definitions in memory once. Generated definitions repeat the same fields in several
// places, versions and kinds, so that those of an operator take a fraction of the memory. The zero value is ready to use.
type Sharing struct {
	known map[string]sharedValue
}

// A sharedValue is the value that stands for all that are equal to it, and a number that identifies it.
type sharedValue struct {
	value any
	id    uint64
}

// Add replaces the parts of the schemas of a CustomResourceDefinition by equal ones of those that were added before. None of these
// schemas may be changed from then on.
func (s *Sharing) Add(definition map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	versions, _ := list.([]any)
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["schema"] != nil {
			version["schema"] = s.share(version["schema"]).value
		}
	}
}

// share returns what stands for a value. The key says what the value is made of: a scalar of itself, anything else of the numbers of its
// parts.
func (s *Sharing) share(value any) sharedValue {
	switch v := value.(type) {
	case map[string]any:
		key := []byte("map ")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			field, part := s.share(name), s.share(v[name])
			v[name] = part.value
			key = binary.AppendUvarint(binary.AppendUvarint(key, field.id), part.id)
		}
		return s.standIn(string(key), v)
	case []any:
		key := []byte("list ")
		for i := range v {
			part := s.share(v[i])
			v[i] = part.value
			key = binary.AppendUvarint(key, part.id)
		}
		return s.standIn(string(key), v)
	case string:
		return s.standIn("string "+v, v)
	}
	return s.standIn(fmt.Sprintf("%T %v", value, value), value)
}

// standIn returns what stands for the values with a key: the first of them.
func (s *Sharing) standIn(key string, value any) sharedValue {
	known, found := s.known[key]
	if !found {
		if s.known == nil {
			s.known = map[string]sharedValue{}
		}
		known = sharedValue{value, uint64(len(s.known))}
		s.known[key] = known
	}
	return known
}
