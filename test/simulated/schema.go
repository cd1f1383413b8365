package simulated

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// open returns the schema of a custom kind: it accepts all fields, lists are atomic, and
// metadata are as in every kind.
func open(k *kind) (managedfields.TypeConverter, error) {
	set := list("set", nil)
	set.Items = &spec.SchemaOrArray{Schema: spec.StringProperty()}
	owners := list("map", []any{"uid"})
	owner := anything(map[string]spec.Schema{"uid": *spec.StringProperty()})
	owners.Items = &spec.SchemaOrArray{Schema: &owner}
	whole := anything(map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(),
		"metadata": anything(map[string]spec.Schema{"finalizers": set, "ownerReferences": owners}),
	})
	whole.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"whole": &whole}, true)
}

func anything(properties map[string]spec.Schema) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
	s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return s
}

func list(how string, keys []any) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"array"}}}
	s.AddExtension("x-kubernetes-list-type", how)
	if keys != nil {
		s.AddExtension("x-kubernetes-list-map-keys", keys)
	}
	return s
}
