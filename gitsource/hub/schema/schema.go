// Package schema compares the fields of manifests with the schemas of their kinds.
//
// Decode is for gitfleet's kinds: it decodes strictly, and reports every unknown, missing and
// invalid field with a suggestion. CheckBuiltin and CompareCustom only warn: CheckBuiltin
// compares built-in kinds with the Go types of client-go, and CompareCustom compares custom
// resources with the schema in their definition.
//
// The Kubernetes libraries find less and take longer. For a Deployment of 1 KiB without
// mistakes, strict decoding (sigs.k8s.io/json, or the converter of apimachinery) takes seven
// times the 7 µs of CheckBuiltin, and stops at the first value of a wrong type, without its
// path or the expected type. kube-openapi's validation takes twenty times as long as
// CompareCustom, and does not report unknown fields, which are the most frequent mistake.
package schema

import (
	"encoding/json"
	"reflect"
	"strings"

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
	newShaper(r, gvk).value(object, reflect.TypeOf(empty), r.Object)
	data, err := json.Marshal(object)
	if err != nil {
		r.Errorf(r.Object, "cannot be written as JSON: %v", err)
		return nil
	}
	typed, strict, err := api.Decode(gk, data)
	if !r.Problems[before:].HasErrors() {
		// The shaper reports more precisely; the strict decoder finds what the shaper has
		// missed.
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

func newShaper(r *document.Report, gvk schema.GroupVersionKind) *shaper {
	s := &shaper{r: r}
	if gvk.Version != "v1" {
		return s
	}
	for _, f := range api.Kinds[gvk.GroupKind()].OnlyV1beta1 {
		s.absent = append(s.absent, r.Field(strings.Split(f, ".")...).String())
	}
	s.newest = schema.GroupVersion{Group: gvk.Group, Version: "v1beta1"}.String()
	return s
}
