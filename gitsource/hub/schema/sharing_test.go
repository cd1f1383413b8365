package schema

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// sameMap reports whether two values are one map.
func sameMap(x, y any) bool { return reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer() }

// Equal parts of schemas are in memory once, also of several definitions, and what a definition says stays the same.
func TestSharing(t *testing.T) {
	text := func(more map[string]any) map[string]any {
		schema := map[string]any{"type": "string", "description": "a text", "maxLength": int64(3), "enum": []any{"a", int64(1), 1.0, true, nil}}
		for key, value := range more {
			schema[key] = value
		}
		return schema
	}
	definition := func(more map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"versions": []any{
			map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"one": text(nil), "two": text(nil)}}}},
			map[string]any{"name": "v2", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{"one": text(more), "two": text(nil)}}}},
			map[string]any{"name": "v3"},
			"no version",
		}}}
	}
	fields := func(definition map[string]any, version int) map[string]any {
		v := definition["spec"].(map[string]any)["versions"].([]any)[version].(map[string]any)
		return v["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	}
	var s Sharing
	first, second := definition(map[string]any{"maxLength": 3.0}), definition(map[string]any{"maxLength": "3"})
	for _, d := range []map[string]any{first, second, {}} {
		before := runtime.DeepCopyJSON(d)
		if s.Add(d); !reflect.DeepEqual(d, before) {
			t.Errorf("it is\n%v\nwant\n%v", d, before)
		}
	}
	for _, other := range []any{fields(first, 0)["two"], fields(first, 1)["two"], fields(second, 0)["one"]} {
		if !sameMap(fields(first, 0)["one"], other) {
			t.Error("equal schemas are not the same")
		}
	}
	if !sameMap(fields(first, 0), fields(second, 0)) {
		t.Error("equal properties of two definitions are not the same")
	}
}
