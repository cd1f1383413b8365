package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// CompareCustom compares the object at p with the CustomResourceDefinition of its kind.
func CompareCustom(p *document.FieldPath, object, definition *unstructured.Unstructured) *Comparison {
	c := &Comparison{top: p}
	schema, versions := schemaOf(definition.Object, object.GroupVersionKind().Version)
	switch {
	case len(versions) > 0:
		c.faults = []fault{{p.Child("apiVersion"), "no such version; there is " + strings.Join(versions, ", ")}}
	case schema != nil:
		c.search(func() { c.custom(object.Object, schema, true, false) })
	}
	return c
}

// Fits reports whether there is nothing to warn of.
func (c *Comparison) Fits() bool { return len(c.faults) == 0 }

// schemaOf returns the schema of a version, not copied. If the version is not defined, it
// returns the versions that are.
func schemaOf(definition map[string]any, version string) (schema map[string]any, versions []string) {
	list, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	all, _ := list.([]any)
	for _, v := range all {
		v, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(v, "name")
		if name == version {
			schema, _, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema")
			m, _ := schema.(map[string]any)
			return m, nil
		}
		if name != "" {
			versions = append(versions, name)
		}
	}
	return nil, versions
}

// custom compares a value with a schema. resource says that the value also has the fields of
// every resource, which schemas do not list; loose allows any field.
func (c *Comparison) custom(v any, schema map[string]any, resource, loose bool) {
	if v == nil {
		return
	}
	if schema["x-kubernetes-int-or-string"] == true {
		switch v.(type) {
		case int64, string:
		default:
			c.expect("a whole number or a string, not " + document.Describe(v))
		}
		return
	}
	loose = loose || schema["x-kubernetes-preserve-unknown-fields"] == true
	switch schema["type"] {
	case "object":
		c.customObject(v, schema, resource || schema["x-kubernetes-embedded-resource"] == true, loose)
	case "array":
		c.customList(v, schema, loose)
	case "string":
		c.expect(scalarFault(v, reflect.String))
	case "integer":
		c.expect(scalarFault(v, reflect.Int64))
	case "boolean":
		c.expect(scalarFault(v, reflect.Bool))
	case "number":
		switch v.(type) {
		case int64, float64:
		default:
			c.expect("a number, not " + document.Describe(v))
		}
	}
}

func (c *Comparison) customObject(v any, schema map[string]any, resource, loose bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.expect("a mapping, not " + document.Describe(v))
		return
	}
	fields, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	loose = loose || schema["additionalProperties"] == true
	c.levels = append(c.levels, level{len(c.steps), properties(fields)})
	c.each(m, func(key string, value any) {
		of, known := fields[key].(map[string]any)
		switch {
		case resource && (key == "apiVersion" || key == "kind" || key == "metadata"):
		case known:
			c.customBelow(document.Step{Key: key}, value, of, false)
		case others != nil:
			c.customBelow(document.Step{Key: key}, value, others, false)
		case !loose:
			c.unknown(key)
		}
	})
	c.levels = c.levels[:len(c.levels)-1]
}

// customList compares a list with a schema. loose also applies to the items, where servers keep
// unknown fields too.
func (c *Comparison) customList(v any, schema map[string]any, loose bool) {
	items, ok := v.([]any)
	if !ok {
		c.expect("a list, not " + document.Describe(v))
		return
	}
	of, _ := schema["items"].(map[string]any)
	for i, item := range items {
		if c.enough() {
			return
		}
		c.customBelow(document.Step{Index: i}, item, of, loose)
	}
}

func (c *Comparison) customBelow(s document.Step, v any, schema map[string]any, loose bool) {
	c.steps = append(c.steps, s)
	c.custom(v, schema, false, loose)
	c.steps = c.steps[:len(c.steps)-1]
}

// properties are the fields of a mapping in the schema of a definition.
type properties map[string]any

func (p properties) size() int            { return len(p) }
func (p properties) has(name string) bool { return p[name] != nil }
func (p properties) names() []string      { return slices.Sorted(maps.Keys(p)) }

func (p properties) inside(name string) fieldSet {
	schema, _ := p[name].(map[string]any)
	below, _ := schema["properties"].(map[string]any)
	return properties(below)
}
