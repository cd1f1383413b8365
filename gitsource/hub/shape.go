package hub

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

	"github.com/gitfleet/gitfleet/placement/api"
)

// A shaper compares the value of a document with the Go type it is to become,
// and finds at once every unknown field, missing field and wrong type, where a
// decoder stops at the first. It mends the few shapes that public samples get
// wrong, with a warning, and leaves out what is wrong, so that the rest can be
// decoded.
type shaper struct {
	r *report
	// absent are fields, as dotted paths, that this version does not have.
	absent []string
	// newest is the apiVersion that has them.
	newest string
}

// value returns what v is to be decoded from; ok is false if it must be left
// out.
func (s *shaper) value(v any, t reflect.Type, p *fieldPath) (mended any, ok bool) {
	if t.Kind() == reflect.Pointer {
		return s.value(v, t.Elem(), p)
	}
	if v == nil {
		return nil, true
	}
	if check, special := specialTypes[t]; special {
		return s.verdict(v, p, check(v))
	}
	if allowed, isEnum := enums[t]; isEnum {
		return s.enum(v, allowed, p)
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.structure(v, t, p)
	case reflect.Slice:
		return s.list(v, t, p)
	case reflect.Map:
		return s.dictionary(v, t, p)
	default:
		return s.verdict(v, p, scalarFault(v, t.Kind()))
	}
}

// verdict reports a fault, if there is one.
func (s *shaper) verdict(v any, p *fieldPath, fault string) (any, bool) {
	if fault == "" {
		return v, true
	}
	s.r.errorf(p, "must be %s", fault)
	s.r.mute(p)
	return nil, false
}

// specialTypes decode themselves. Their check says what is expected, if the
// value is something else.
var specialTypes = map[reflect.Type]func(any) string{
	reflect.TypeFor[json.RawMessage](): func(any) string { return "" },
	reflect.TypeFor[metav1.Time](): func(v any) string {
		if s, ok := v.(string); ok {
			if data, err := json.Marshal(s); err == nil && new(metav1.Time).UnmarshalJSON(data) == nil {
				return ""
			}
		}
		return "a time such as 2026-01-31T12:00:00Z"
	},
	reflect.TypeFor[metav1.FieldsV1](): func(any) string { return "" },
	reflect.TypeFor[resource.Quantity](): func(v any) string {
		switch q := v.(type) {
		case string:
			if _, err := resource.ParseQuantity(q); err == nil {
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

func scalarFault(v any, kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		if _, ok := v.(string); !ok {
			return "a string, not " + describe(v) + quoteIt(v)
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return "true or false, not " + describe(v)
		}
	case reflect.Int32:
		if i, ok := v.(int64); !ok || i < math.MinInt32 || i > math.MaxInt32 {
			return "a whole number of at most 2147483647" + unquoteIt(v)
		}
	case reflect.Int, reflect.Int64:
		if _, ok := v.(int64); !ok {
			return "a whole number" + unquoteIt(v)
		}
	}
	return ""
}

func quoteIt(v any) string {
	switch v.(type) {
	case bool, int64, float64:
		return "; put it in quotes"
	}
	return ""
}

func unquoteIt(v any) string {
	if _, text := v.(string); text {
		return ", without quotes"
	}
	return ""
}

func (s *shaper) structure(v any, t reflect.Type, p *fieldPath) (any, bool) {
	if list, isList := v.([]any); isList && len(list) == 1 && t == reflect.TypeFor[api.ClusterSelectorTerm]() && p.key == "preference" {
		s.r.warnf(p, "is a mapping, not a list; remove the dash in front of it")
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		return s.verdict(v, p, "a mapping, not "+describe(v))
	}
	if t == reflect.TypeFor[api.ApplyStrategy]() {
		s.comparisonOptions(m, p)
	}
	fields := fieldsOf(t)
	for _, key := range sortedKeys(m) {
		f, known := fields.find(key)
		if !known || s.isAbsent(p.child(key)) {
			s.unknown(p.child(key), fields, known)
			delete(m, key)
			continue
		}
		if mended, keep := s.value(m[key], f.typ, p.child(key)); keep {
			m[key] = mended
		} else {
			delete(m, key)
		}
	}
	for _, f := range fields {
		if f.required && m[f.name] == nil && !s.r.isMuted(p.child(f.name).String()) {
			s.r.errorf(p.child(f.name), "missing, and required")
			s.r.mute(p.child(f.name))
		}
	}
	return m, true
}

// comparisonOptions is how the public documentation spells the field in its
// prose.
func (s *shaper) comparisonOptions(m map[string]any, p *fieldPath) {
	plural, there := m["comparisonOptions"]
	if !there {
		return
	}
	delete(m, "comparisonOptions")
	singular, both := m["comparisonOption"]
	if both && !sameWord(plural, singular) {
		s.r.errorf(p.child("comparisonOptions"), "says something else than comparisonOption, which is the right spelling; remove comparisonOptions")
		return
	}
	s.r.warnf(p.child("comparisonOptions"), "the right spelling is comparisonOption")
	if !both {
		m["comparisonOption"] = plural
	}
}

func sameWord(a, b any) bool {
	x, ok := a.(string)
	y, ok2 := b.(string)
	return ok && ok2 && upperFirst(x) == upperFirst(y)
}

func (s *shaper) isAbsent(p *fieldPath) bool { return slices.Contains(s.absent, p.String()) }

func (s *shaper) unknown(p *fieldPath, fields structFields, otherVersion bool) {
	if otherVersion {
		s.r.errorf(p, "unknown field: only %s has it; change the apiVersion", s.newest)
		return
	}
	s.r.errorf(p, "unknown field; %s", didYouMean(p.key, fields.names()))
	s.r.mute(p)
}

func (s *shaper) list(v any, t reflect.Type, p *fieldPath) (any, bool) {
	if m, isMap := v.(map[string]any); isMap && t.Elem() == reflect.TypeFor[api.PreferredClusterSelector]() {
		s.r.warnf(p, "is a list of {weight, preference}; write a dash in front of this one")
		v = []any{m}
	}
	items, ok := v.([]any)
	if !ok {
		return s.verdict(v, p, "a list, not "+describe(v))
	}
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if item == nil {
			s.r.errorf(p.at(i), "an entry of the list is empty; fill it in, or remove it")
			continue
		}
		if mended, keep := s.value(item, t.Elem(), p.at(i)); keep {
			kept = append(kept, mended)
		}
	}
	return kept, true
}

func (s *shaper) dictionary(v any, t reflect.Type, p *fieldPath) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return s.verdict(v, p, "a mapping, not "+describe(v))
	}
	for _, key := range sortedKeys(m) {
		if mended, keep := s.value(m[key], t.Elem(), p.child(key)); keep {
			m[key] = mended
		} else {
			delete(m, key)
		}
	}
	return m, true
}

// enum accepts a first letter of the wrong case, which the public samples have.
func (s *shaper) enum(v any, allowed []string, p *fieldPath) (any, bool) {
	word, isString := v.(string)
	if isString {
		for _, a := range allowed {
			if word == a {
				return word, true
			}
			if upperFirst(word) == upperFirst(a) {
				s.r.warnf(p, "%q is written %s", word, a)
				return a, true
			}
		}
		if word == "" {
			return s.verdict(v, p, "one of "+strings.Join(allowed, ", ")+", or left out")
		}
		return s.verdict(v, p, "one of "+strings.Join(allowed, ", ")+", not \""+word+"\"")
	}
	return s.verdict(v, p, "one of "+strings.Join(allowed, ", "))
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

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

var fieldCache sync.Map // of reflect.Type to structFields

// fieldsOf lists the JSON fields of a struct. As in every Kubernetes type, a
// field without omitempty is required.
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
