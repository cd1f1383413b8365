package hub

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A customResult is the result of comparing a custom object with one definition.
type customResult struct {
	by       *item
	problems Problems
}

// A misfit is a custom object that differs from its definition.
type misfit struct {
	*item
	by    *item
	found *comparison
}

// checkCustom compares custom objects with the definitions of the commit, as checkBuiltin does
// with built-in kinds, and caches the results.
func (l *Loader) checkCustom(t *tree, a *assembly) error {
	definitions := map[api.GroupKind]*item{}
	for _, it := range a.items {
		if it.scope != nil && it.object != nil {
			definitions[it.scope.kind] = it
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	var customItems []*item
	misfits := map[string][]misfit{} // by file
	for _, it := range a.items {
		by := definitions[it.id.GroupKind()]
		if by == nil || !it.custom || it.object == nil {
			continue
		}
		customItems = append(customItems, it)
		if it.customResult != nil && it.customResult.by == by {
			continue
		}
		if found := compared(by, it); len(found.faults) > 0 {
			misfits[it.origin.Path] = append(misfits[it.origin.Path], misfit{it, by, found})
		} else {
			it.customResult = &customResult{by: by}
		}
	}
	for _, path := range sortedKeys(misfits) {
		if err := l.reportMisfits(t, path, misfits[path]); err != nil {
			return err
		}
	}
	for _, it := range customItems {
		a.problems = append(a.problems, it.customResult.problems...)
	}
	return nil
}

// reportMisfits reports those of one file. The file is read again to find lines in it, which
// are not kept.
func (l *Loader) reportMisfits(t *tree, path string, misfits []misfit) error {
	documents := map[int]textDocument{}
	if slices.ContainsFunc(misfits, func(m misfit) bool { return !m.built() }) {
		defer t.drop(path)
		data, err := t.read(path)
		if err != nil {
			return err
		}
		for _, doc := range parseSyntax(path, data, l.opts.Limits, nil).documents {
			documents[doc.number] = doc
		}
	}
	for _, m := range misfits {
		r := &report{origin: m.origin, top: m.top}
		if !m.built() {
			doc := documents[m.origin.Document]
			r.root, r.offset = doc.root, doc.before
		}
		m.found.warn(r, "the CustomResourceDefinition at "+positionText(m.by.origin))
		m.customResult = &customResult{m.by, r.problems}
	}
	return nil
}

// compared compares an object with its definition.
func compared(by, it *item) *comparison {
	c, object := &comparison{top: it.top}, it.object.Object
	schema, versions := schemaOf(by.object.Object.Object, object.GroupVersionKind().Version)
	switch {
	case len(versions) > 0:
		c.faults = []fault{{it.top.child("apiVersion"), "no such version; there is " + strings.Join(versions, ", ")}}
	case schema != nil:
		c.search(func() { c.custom(object.Object, schema, true, false) })
	}
	return c
}

// schemaOf returns the schema of a version, without a copy, or the defined versions if that one
// is not defined.
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

// custom compares a value with a schema. A resource has fields that its schema does not list;
// if loose, any field is allowed.
func (c *comparison) custom(v any, schema map[string]any, resource, loose bool) {
	if v == nil {
		return
	}
	if schema["x-kubernetes-int-or-string"] == true {
		switch v.(type) {
		case int64, string:
		default:
			c.expect("a whole number or a string, not " + describe(v))
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
			c.expect("a number, not " + describe(v))
		}
	}
}

func (c *comparison) customObject(v any, schema map[string]any, resource, loose bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.expect("a mapping, not " + describe(v))
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
			c.customBelow(step{key: key}, value, of, false)
		case others != nil:
			c.customBelow(step{key: key}, value, others, false)
		case !loose:
			c.unknown(key)
		}
	})
	c.levels = c.levels[:len(c.levels)-1]
}

// customList passes on loose: servers then keep unknown fields of the items.
func (c *comparison) customList(v any, schema map[string]any, loose bool) {
	items, ok := v.([]any)
	if !ok {
		c.expect("a list, not " + describe(v))
		return
	}
	of, _ := schema["items"].(map[string]any)
	for i, item := range items {
		if c.enough() {
			return
		}
		c.customBelow(step{index: i}, item, of, loose)
	}
}

func (c *comparison) customBelow(s step, v any, schema map[string]any, loose bool) {
	c.steps = append(c.steps, s)
	c.custom(v, schema, false, loose)
	c.steps = c.steps[:len(c.steps)-1]
}

// properties are the fields of a mapping in a definition.
type properties map[string]any

func (p properties) size() int            { return len(p) }
func (p properties) has(name string) bool { return p[name] != nil }
func (p properties) names() []string      { return sortedKeys(p) }

func (p properties) inside(name string) fieldSet {
	schema, _ := p[name].(map[string]any)
	below, _ := schema["properties"].(map[string]any)
	return properties(below)
}
