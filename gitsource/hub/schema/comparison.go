package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// value compares the value at p. It returns the corrected value; valid is false if the value
// must be removed.
func (c *comparison) value(v any, s fieldSchema, p *document.FieldPath, up *level) (corrected any, valid bool) {
	if v == nil {
		return nil, true
	}
	is := s.shape()
	if text, isText := v.(string); isText && c.texts != nil {
		if is.fault != nil && is.fault(text) == "" && is.fault(int64(1)) != "" {
			*c.texts = append(*c.texts, p.Keys(nil))
		}
		return v, true
	}
	if text, isText := v.(string); isText && c.own == nil && variable.In(text) { // what it will be is not known
		if is.fault != nil && is.fault(int64(1)) == "" {
			c.r.Numbers = append(c.r.Numbers, api.NumberField{Path: p.Keys(c.r.Object), OrText: is.fault("1") == ""})
		}
		return v, true
	}
	if c.own != nil {
		v, is = c.correct(v, s.(goType), is, p)
	}
	switch {
	case is.fault != nil:
		return v, c.expect(p, is.fault(v))
	case is.items != nil:
		items, ok := v.([]any)
		if !ok {
			return nil, c.expect(p, "a list, not "+document.Describe(v))
		}
		if is.key != nil && c.own == nil {
			c.distinct(items, is.key, p)
		}
		return c.list(items, is.items, p, up), true
	case is.fields != nil:
		m, ok := v.(map[string]any)
		if !ok {
			return nil, c.expect(p, "a mapping, not "+document.Describe(v))
		}
		c.mapping(m, is, &level{up, p, is.fields})
		if t, isType := s.(goType); isType && c.own == nil && rules[t.Type] != nil {
			rules[t.Type](c, m, p)
		}
	}
	return v, true
}

// expect reports that something else was expected at p, unless want is empty. It returns
// whether the value may stay.
func (c *comparison) expect(p *document.FieldPath, want string) bool {
	if want == "" {
		return true
	}
	c.report(p, "must be "+want)
	return c.own == nil
}

func (c *comparison) list(items []any, of fieldSchema, p *document.FieldPath, up *level) []any {
	kept := items[:0]
	for i, item := range items {
		switch corrected, valid := c.value(item, of, p.At(i), up); {
		case c.full():
			return items
		case c.own == nil:
		case item == nil:
			c.r.Errorf(p.At(i), "an entry of the list is empty; fill it in, or remove it")
		case valid:
			kept = append(kept, corrected)
		}
	}
	if c.own == nil {
		return items
	}
	return kept
}

func (c *comparison) mapping(m map[string]any, is shape, here *level) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if c.full() {
			return
		}
		p := here.at.Child(key)
		of, known := is.fields.find(key)
		switch {
		case is.resource && (key == "apiVersion" || key == "kind" || key == "metadata"):
			continue
		case known && c.own.lacks(p):
			c.r.Errorf(p, "unknown field: only %s has it; change the apiVersion", c.own.newest)
			delete(m, key)
			continue
		case !known && is.values != nil:
			of = is.values
		case !known:
			if !is.loose {
				c.unknown(m, key, here)
			}
			continue
		}
		corrected, valid := c.value(m[key], of, p, here)
		switch {
		case c.own == nil:
		case valid:
			m[key] = corrected
		default:
			delete(m, key)
		}
	}
	if fields, ok := is.fields.(structFields); ok && c.own != nil {
		c.required(m, fields, here.at)
	}
}

func (c *comparison) unknown(m map[string]any, key string, here *level) {
	if c.own != nil {
		c.report(here.at.Child(key), "unknown field; "+SuggestKnown(key, here.fields.names()))
		delete(m, key)
		return
	}
	at, message := here.at.Child(key), "unknown field"
	if c.secret && !document.IsWord(key) {
		at = here.at // an unknown key may be a secret value
	}
	if meant := here.suggestion(key); meant != "" {
		message += "; " + api.DidYouMean(meant)
	}
	c.report(at, message)
	c.r.Mute(here.at.Child(key)) // the field that is meant is not missing
}

// Longer words, and mappings with more fields, get no suggestion: they are not written by hand,
// and the search would take long.
const (
	maxSuggestedKey    = 64
	maxSuggestedFields = 256
)

// suggestion returns the field that the user probably meant by an unknown one: one with a
// similar name in the same mapping, or with the same name in a mapping nearby, since the
// indentation may be wrong.
func (l *level) suggestion(key string) string {
	if len(key) > maxSuggestedKey || l.fields.size() > maxSuggestedFields {
		return ""
	}
	names := l.fields.names()
	if best := api.Closest(key, names); best != "" {
		return best
	}
	for _, name := range names {
		inner, _ := l.fields.find(name)
		if fields := inner.shape().fields; fields != nil && has(fields, key) {
			return l.at.Child(name, key).String()
		}
	}
	for up := l.up; up != nil; up = up.up {
		if has(up.fields, key) {
			return up.at.Child(key).String()
		}
	}
	return ""
}

func has(fields fieldSet, name string) bool {
	_, known := fields.find(name)
	return known
}

// SuggestKnown returns the end of a message about an unknown word: the most similar known word,
// or all known words.
func SuggestKnown(word string, known []string) string {
	return api.Suggest(word, known, "known here: "+strings.Join(known, ", "))
}

// FieldNames returns the names of the JSON fields of a struct, sorted.
func FieldNames(t reflect.Type) []string {
	return slices.Sorted(slices.Values(fieldsOf(t).names()))
}
