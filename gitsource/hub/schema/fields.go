package schema

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

type structField struct {
	name     string
	typ      reflect.Type
	required bool
}

type structFields []structField

func (fs structFields) find(name string) (structField, bool) {
	for _, f := range fs {
		if f.name == name {
			return f, true
		}
	}
	return structField{}, false
}

func (fs structFields) names() []string {
	names := make([]string, len(fs))
	for i, f := range fs {
		names[i] = f.name
	}
	return names
}

// FieldNames returns the names of the JSON fields of a struct, sorted.
func FieldNames(t reflect.Type) []string {
	names := fieldsOf(t).names()
	slices.Sort(names)
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
			fields = append(fields, structField{name, f.Type, required})
		}
	}
	fieldCache.Store(t, fields)
	return fields
}
