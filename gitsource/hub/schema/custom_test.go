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
func TestCheckCustomCopiesNoDefinition(t *testing.T) {
	allocations := func(more int) float64 {
		fields := []string{"size"}
		for i := range more {
			fields = append(fields, fmt.Sprint("field", i))
		}
		object, definition := gadget(map[string]any{"size": int64(1)}, fields...)
		return testing.AllocsPerRun(20, func() { CheckCustom(&document.Report{}, nil, object, definition, "its definition") })
	}
	if small, large := allocations(0), allocations(100); small != large {
		t.Errorf("%v allocations with a small definition, %v with a large one", small, large)
	}
}

// Of an object with very many problems, always the same ones are reported, and the comparison
// ends at the limit.
func TestCheckCustomEndsAtTheLimit(t *testing.T) {
	wrong := map[string]any{}
	for i := range 1000 {
		wrong[fmt.Sprintf("wrong%03d", i)] = int64(1)
	}
	object, definition := gadget(wrong, "size")
	r := &document.Report{}
	CheckCustom(r, nil, object, definition, "its definition")
	if n := len(r.Problems); n != document.MaxProblems+1 || r.Problems[0].Field != "wrong000" || r.Problems[n-2].Field != "wrong099" {
		t.Errorf("%d problems are reported, from %v", n, r.Problems[0])
	}
}

// listedFields counts how often the names of its fields are listed.
type listedFields struct {
	properties
	listed int
}

func (f *listedFields) names() []string {
	f.listed++
	return f.properties.names()
}

// Suggestions are searched for only where the search is fast. Otherwise the names are not even
// listed, which would be slow for many unknown fields in a mapping of many fields.
func TestSuggestionsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		key    string
		fields int // beside size and a long name
		want   string
		listed int
	}{
		"a short key":               {"sise", 0, "size", 1},
		"a long key":                {strings.Repeat("a", maxSuggestedKey+1), 0, "", 0},
		"the most fields":           {"sise", maxSuggestedFields - 2, "size", 1},
		"more fields":               {"sise", maxSuggestedFields - 1, "", 0},
		"a long key of many fields": {strings.Repeat("a", maxSuggestedKey+1), maxSuggestedFields, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			fields := &listedFields{properties: properties{"size": map[string]any{}, strings.Repeat("a", maxSuggestedKey+2): map[string]any{}}}
			for i := range test.fields {
				fields.properties[fmt.Sprint("field", i)] = map[string]any{}
			}
			l := &level{fields: fields}
			if got := l.suggestion(test.key); got != test.want || fields.listed != test.listed {
				t.Errorf("%q, and the names are listed %d times; want %q and %d", got, fields.listed, test.want, test.listed)
			}
		})
	}
}
