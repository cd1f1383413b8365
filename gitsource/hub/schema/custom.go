package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// CheckCustom compares the object at p with the CustomResourceDefinition of its kind, and warns
// as CheckBuiltin does. by describes the definition.
func CheckCustom(r *document.Report, p *document.FieldPath, object, definition *unstructured.Unstructured, by string) {
	c := &comparison{r: r, by: by}
	schema, versions := versionOf(definition.Object, object.GroupVersionKind().Version)
	switch {
	case len(versions) > 0:
		c.report(p.Child("apiVersion"), "no such version; there is "+strings.Join(versions, ", "))
	case schema != nil:
		c.value(object.Object, property{schema: schema, resource: true}, p, nil)
	}
}

// versionOf returns the schema of a version, not copied. If the version is not defined, it
// returns the versions that are.
func versionOf(definition map[string]any, version string) (schema map[string]any, versions []string) {
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

// A property is a schema in a CustomResourceDefinition.
type property struct {
	schema map[string]any
	// resource says that the value also has the fields of every resource; loose allows any
	// field.
	resource, loose bool
}

func (p property) shape() shape {
	if p.schema["x-kubernetes-int-or-string"] == true {
		return shape{fault: intOrStringFault}
	}
	loose := p.loose || p.schema["x-kubernetes-preserve-unknown-fields"] == true
	switch p.schema["type"] {
	case "object":
		fields, _ := p.schema["properties"].(map[string]any)
		is := shape{fields: properties(fields), loose: loose || p.schema["additionalProperties"] == true}
		is.resource = p.resource || p.schema["x-kubernetes-embedded-resource"] == true
		if values, ok := p.schema["additionalProperties"].(map[string]any); ok {
			is.values = property{schema: values}
		}
		return is
	case "array":
		items, _ := p.schema["items"].(map[string]any)
		return shape{items: property{schema: items, loose: loose}, key: declaredKey(p.schema, items)} // servers keep unknown fields of the items too
	case "string":
		return shape{fault: scalarFaults[reflect.String]}
	case "integer":
		return shape{fault: integerFault}
	case "boolean":
		return shape{fault: scalarFaults[reflect.Bool]}
	case "number":
		return shape{fault: numberFault}
	}
	return shape{}
}

func intOrStringFault(v any) string {
	switch v.(type) {
	case int64, string:
		return ""
	}
	return "a whole number or a string, not " + document.Describe(v)
}

func numberFault(v any) string {
	switch v.(type) {
	case int64, float64:
		return ""
	}
	return "a number, not " + document.Describe(v)
}

// properties are the fields of a mapping in the schema of a definition.
type properties map[string]any

func (p properties) size() int { return len(p) }

func (p properties) names() []string { return slices.Sorted(maps.Keys(p)) }

func (p properties) find(name string) (fieldSchema, bool) {
	s, ok := p[name].(map[string]any)
	return property{schema: s}, ok
}
