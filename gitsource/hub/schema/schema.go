// Package schema compares the fields of manifests with the schemas of their kinds.
//
// Decode is for gitfleet's kinds: it decodes strictly, and reports every unknown, missing and
// invalid field with a suggestion. CheckBuiltin and CheckCustom only warn: CheckBuiltin compares
// built-in kinds with the Go types of client-go, and CheckCustom compares custom resources with
// the schema in their definition.
//
// The Kubernetes libraries find less: strict decoding stops at the first value of a wrong type,
// without its path or the expected type, and kube-openapi does not report unknown fields, which
// are the most frequent mistake.
package schema

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Decode decodes an object of one of gitfleet's kinds into its Go type, and reports what is
// wrong with it. It corrects a few common mistakes. It returns nil if the object cannot be
// decoded at all.
func Decode(r *document.Report, gvk schema.GroupVersionKind, object map[string]any) any {
	gk := gvk.GroupKind()
	before := len(r.Problems)
	empty, _, _ := api.Decode(gk, []byte("{}"))
	(&comparison{r: r, own: newOwnRules(r, gvk)}).value(object, schemaOf(reflect.TypeOf(empty)), r.Object, nil)
	data, err := json.Marshal(object)
	if err != nil {
		r.Errorf(r.Object, "cannot be written as JSON: %v", err)
		return nil
	}
	typed, strict, err := api.Decode(gk, data)
	if !r.Problems[before:].HasErrors() {
		// The comparison reports more precisely; the strict decoder finds what it has missed.
		for _, e := range strict {
			r.Errorf(r.Object, "%v", e)
		}
		if err != nil {
			r.Errorf(r.Object, "cannot be read: %v", err)
		}
	}
	if err != nil {
		return nil
	}
	return typed
}
