package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A goType is the schema that follows from a Go type, which is no pointer, and its JSON tags.
type goType struct {
	reflect.Type
	// key identifies the items of a list; nil if they are not identified.
	key itemKey
}

func schemaOf(t reflect.Type) goType {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return goType{Type: t}
}

func (t goType) shape() shape {
	if fault, special := specialTypes[t.Type]; special {
		return shape{fault: fault}
	}
	switch t.Kind() {
	case reflect.Struct:
		if fields := fieldsOf(t.Type); len(fields) > 0 {
			return shape{fields: fields}
		}
		return shape{} // it decodes itself, and accepts other values
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return shape{fault: bytesFault}
		}
		return shape{items: schemaOf(t.Elem()), key: t.key}
	case reflect.Map:
		return shape{fields: structFields(nil), values: schemaOf(t.Elem())}
	default:
		if allowed := enums[t.Type]; allowed != nil {
			return shape{fault: func(v any) string { return wordFault(v, allowed) }}
		}
		return shape{fault: scalarFaults[t.Kind()]}
	}
}

type structField struct {
	name     string
	schema   fieldSchema
	required bool
}

type structFields []structField

func (fs structFields) find(name string) (fieldSchema, bool) {
	i := slices.IndexFunc(fs, func(f structField) bool { return f.name == name })
	if i < 0 {
		return nil, false
	}
	return fs[i].schema, true
}

func (fs structFields) size() int { return len(fs) }

func (fs structFields) names() []string {
	names := make([]string, len(fs))
	for i, f := range fs {
		names[i] = f.name
	}
	return names
}

var fieldCache sync.Map // from reflect.Type to structFields

// fieldsOf returns the JSON fields of a struct. As usual in Kubernetes types, a field without
// omitempty is required.
func fieldsOf(t reflect.Type) structFields {
	if known, ok := fieldCache.Load(t); ok {
		return known.(structFields)
	}
	var fields structFields
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields = append(fields, fieldsOf(f.Type)...)
		case name != "" && name != "-":
			required := !strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Bool
			fields = append(fields, structField{name, schemaOf(f.Type), required})
		}
	}
	fields = withListKeys(t, fields)
	fieldCache.Store(t, fields)
	return fields
}

func anyValue(any) string { return "" }

// specialTypes are types that decode themselves. The functions return what was expected if a
// value cannot be decoded, and an empty text if it can.
var specialTypes = map[reflect.Type]func(any) string{
	reflect.TypeFor[json.RawMessage](): anyValue,
	reflect.TypeFor[metav1.FieldsV1](): anyValue,
	reflect.TypeFor[metav1.Time](): func(v any) string {
		if s, ok := v.(string); ok {
			if data, err := json.Marshal(s); err == nil && new(metav1.Time).UnmarshalJSON(data) == nil {
				return ""
			}
		}
		return "a time such as 2026-01-31T12:00:00Z"
	},
	reflect.TypeFor[resource.Quantity](): func(v any) string {
		switch q := v.(type) {
		case string:
			if _, err := api.ParseQuantity(strings.TrimSpace(q)); err == nil {
				return ""
			}
		case int64, float64:
			return ""
		}
		return "a quantity such as 4 or 16Gi"
	},
	reflect.TypeFor[intstr.IntOrString](): func(v any) string {
		switch i := v.(type) {
		case string:
			return ""
		case int64:
			if i >= math.MinInt32 && i <= math.MaxInt32 {
				return ""
			}
		}
		return "a whole number or a percentage such as 25%"
	},
}

// scalarFaults return what was expected if a value is not of a kind.
var scalarFaults = map[reflect.Kind]func(any) string{
	reflect.String: func(v any) string {
		switch v.(type) {
		case string:
			return ""
		case bool, int64, float64:
			return "a string, not " + document.Describe(v) + "; put it in quotes"
		}
		return "a string, not " + document.Describe(v)
	},
	reflect.Bool: func(v any) string {
		if _, ok := v.(bool); ok {
			return ""
		}
		return "true or false, not " + document.Describe(v)
	},
	reflect.Int32: func(v any) string {
		if i, ok := v.(int64); ok && i >= math.MinInt32 && i <= math.MaxInt32 {
			return ""
		}
		return "a whole number of at most 2147483647" + unquoteIt(v)
	},
	reflect.Int:   integerFault,
	reflect.Int64: integerFault,
}

func integerFault(v any) string {
	if _, ok := v.(int64); ok {
		return ""
	}
	return "a whole number" + unquoteIt(v)
}

func unquoteIt(v any) string {
	if _, text := v.(string); text {
		return ", without quotes"
	}
	return ""
}

func bytesFault(v any) string {
	if _, text := v.(string); text {
		return ""
	}
	return "text in base64, not " + document.Describe(v)
}

// withListKeys returns the fields of a struct with the keys of its lists.
func withListKeys(t reflect.Type, fields structFields) structFields {
	keys := listKeys()[t.PkgPath()+"."+t.Name()]
	for i := range fields {
		if of, isType := fields[i].schema.(goType); isType && keys != nil {
			of.key = keys[fields[i].name]
			fields[i].schema = of
		}
	}
	return fields
}
