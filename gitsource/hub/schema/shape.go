package schema

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A shaper compares a document with its Go type. Unlike a decoder, which stops at the first
// problem, it finds all unknown fields, missing fields and wrong types. It corrects some
// mistakes of public samples with a warning, and removes invalid parts, so that the rest can be
// decoded.
type shaper struct {
	r *document.Report
	// absent are the fields that this API version does not have, as dotted paths.
	absent []string
	// newest is the apiVersion that has these fields.
	newest string
}

// value returns the value to decode. ok is false if it must be left out.
func (s *shaper) value(v any, t reflect.Type, p *document.FieldPath) (valid any, ok bool) {
	if t.Kind() == reflect.Pointer {
		return s.value(v, t.Elem(), p)
	}
	if v == nil {
		return nil, true
	}
	if check, special := specialTypes[t]; special {
		return s.result(v, p, check(v))
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
		return s.result(v, p, scalarFault(v, t.Kind()))
	}
}

// result reports the fault of a value, if there is one. ok is false if the value must be left
// out.
func (s *shaper) result(v any, p *document.FieldPath, fault string) (any, bool) {
	if fault == "" {
		return v, true
	}
	s.r.Errorf(p, "must be %s", fault)
	s.r.Mute(p)
	return nil, false
}

func (s *shaper) structure(v any, t reflect.Type, p *document.FieldPath) (any, bool) {
	if list, isList := v.([]any); isList && len(list) == 1 && t == reflect.TypeFor[api.ClusterSelectorTerm]() && p.IsField("preference") {
		s.r.Warnf(p, "is a mapping, not a list; remove the dash in front of it")
		v = list[0]
	}
	m, ok := v.(map[string]any)
	if !ok {
		return s.result(v, p, "a mapping, not "+document.Describe(v))
	}
	if t == reflect.TypeFor[api.ApplyStrategy]() {
		s.comparisonOptions(m, p)
	}
	fields := fieldsOf(t)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		f, known := fields.find(key)
		if !known || s.isAbsent(p.Child(key)) {
			s.unknown(p.Child(key), key, fields, known)
			delete(m, key)
			continue
		}
		if mended, keep := s.value(m[key], f.typ, p.Child(key)); keep {
			m[key] = mended
		} else {
			delete(m, key)
		}
	}
	for _, f := range fields {
		// an empty selector of an override selects every cluster
		optional := t == reflect.TypeFor[api.ClusterSelector]() && p.IsField("clusterSelector")
		if f.required && !optional && m[f.name] == nil && !s.r.IsMuted(p.Child(f.name).String()) {
			s.r.Errorf(p.Child(f.name), "required, and missing; add it")
			s.r.Mute(p.Child(f.name))
		}
	}
	return m, true
}

// comparisonOptions accepts the field as KubeFleet's public documentation spells it.
func (s *shaper) comparisonOptions(m map[string]any, p *document.FieldPath) {
	plural, there := m["comparisonOptions"]
	if !there {
		return
	}
	delete(m, "comparisonOptions")
	singular, both := m["comparisonOption"]
	if both && !sameWord(plural, singular) {
		s.r.Errorf(p.Child("comparisonOptions"), "says something else than comparisonOption, which is the right spelling; remove comparisonOptions")
		return
	}
	s.r.Warnf(p.Child("comparisonOptions"), "the right spelling is comparisonOption")
	if !both {
		m["comparisonOption"] = plural
	}
}

func sameWord(a, b any) bool {
	x, ok := a.(string)
	y, ok2 := b.(string)
	return ok && ok2 && upperFirst(x) == upperFirst(y)
}

func (s *shaper) isAbsent(p *document.FieldPath) bool { return slices.Contains(s.absent, p.String()) }

func (s *shaper) unknown(p *document.FieldPath, key string, fields structFields, otherVersion bool) {
	if otherVersion {
		s.r.Errorf(p, "unknown field: only %s has it; change the apiVersion", s.newest)
		return
	}
	s.r.Errorf(p, "unknown field; %s", DidYouMean(key, fields.names()))
	s.r.Mute(p)
}

func (s *shaper) list(v any, t reflect.Type, p *document.FieldPath) (any, bool) {
	if m, isMap := v.(map[string]any); isMap && t.Elem() == reflect.TypeFor[api.PreferredClusterSelector]() {
		s.r.Warnf(p, "is a list of {weight, preference}; write a dash in front of this one")
		v = []any{m}
	}
	items, ok := v.([]any)
	if !ok {
		return s.result(v, p, "a list, not "+document.Describe(v))
	}
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if item == nil {
			s.r.Errorf(p.At(i), "an entry of the list is empty; fill it in, or remove it")
			continue
		}
		if mended, keep := s.value(item, t.Elem(), p.At(i)); keep {
			kept = append(kept, mended)
		}
	}
	return kept, true
}

func (s *shaper) dictionary(v any, t reflect.Type, p *document.FieldPath) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return s.result(v, p, "a mapping, not "+document.Describe(v))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if mended, keep := s.value(m[key], t.Elem(), p.Child(key)); keep {
			m[key] = mended
		} else {
			delete(m, key)
		}
	}
	return m, true
}
