package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// gadget returns an object and the definition of its kind, which has the given fields, all of
// them integers.
func gadget(object map[string]any, fields ...string) (o, definition *unstructured.Unstructured) {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"type": "integer"}
	}
	object["apiVersion"], object["kind"] = "example.com/v1", "Gadget"
	return &unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{
		map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}},
	}}}}
}

// The cost of comparing an object with its definition does not depend on the size of the
// definition.
func TestCustomCopiesNoDefinition(t *testing.T) {
	allocations := func(more int) float64 {
		fields := []string{"size"}
		for i := range more {
			fields = append(fields, fmt.Sprint("field", i))
		}
		object, definition := gadget(map[string]any{"size": int64(1)}, fields...)
		return testing.AllocsPerRun(20, func() { CompareCustom(nil, object, definition) })
	}
	if small, large := allocations(0), allocations(100); small != large {
		t.Errorf("%v allocations with a small definition, %v with a large one", small, large)
	}
}

// For an object with very many problems, only as many as are reported are recorded, and always
// the same ones.
func TestCustomGathersWhatIsTold(t *testing.T) {
	wrong := map[string]any{}
	for i := range 1000 {
		wrong[fmt.Sprintf("wrong%03d", i)] = int64(1)
	}
	object, definition := gadget(wrong, "size")
	found := CompareCustom(nil, object, definition).faults
	if len(found) != document.MaxProblems+1 || found[0].at.String() != "wrong000" || found[document.MaxProblems].at.String() != "wrong100" {
		t.Errorf("%d faults are gathered, from %s", len(found), found[0].at)
	}
}

// Suggestions are searched for only where the search is fast.
func TestMeantIsBounded(t *testing.T) {
	fields := properties{"size": map[string]any{}, strings.Repeat("a", 70): map[string]any{}}
	c := &Comparison{levels: []level{{0, fields}}}
	if c.suggestion("sise", nil) != "size" || c.suggestion(strings.Repeat("a", 69), nil) != "" {
		t.Error("a short word has no suggestion, or a long one has")
	}
	for i := range maxMeantFields {
		fields[fmt.Sprint("field", i)] = map[string]any{}
	}
	if c.suggestion("sise", nil) != "" {
		t.Error("very many fields are searched")
	}
}
