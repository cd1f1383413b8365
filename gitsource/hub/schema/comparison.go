package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Comparison finds the parts of a value that do not match a Go type. Values that match, which
// most do, are compared without an allocation.
type Comparison struct {
	// top is the position of the object in its document.
	top *document.FieldPath
	// secret says that the object is a Secret.
	secret bool

	// wrong says that a problem was found. If collects is set, the problems are recorded.
	wrong, collects bool

	steps  []document.Step
	levels []level
	faults []fault
}

// Warn reports the problems as warnings. by says what the object was compared with.
func (c *Comparison) Warn(r *document.Report, by string) {
	slices.SortFunc(c.faults, func(a, b fault) int { return strings.Compare(a.at.String(), b.at.String()) })
	for _, f := range c.faults {
		r.Warnf(f.at, "%s (checked against %s)", f.message, by)
	}
}

// search runs look to find out whether there is any problem, which is fast and rarely the case.
// Only if there is one, it runs look again to record the first problems, in order.
func (c *Comparison) search(look func()) {
	look()
	if c.wrong {
		c.collects = true
		look()
	}
}

// enough reports whether the rest need not be compared.
func (c *Comparison) enough() bool {
	return c.wrong && !c.collects || len(c.faults) > document.MaxProblems
}

// each visits the entries of a mapping; in sorted order if problems are recorded.
func (c *Comparison) each(m map[string]any, visit func(key string, value any)) {
	if c.collects {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if c.enough() {
				return
			}
			visit(key, m[key])
		}
		return
	}
	for key, value := range m {
		if c.enough() {
			return
		}
		visit(key, value)
	}
}

// A level is a mapping on the path to a value: its depth, and the fields of its type.
type level struct {
	depth  int
	fields fieldSet
}

// A fieldSet has the possible fields of a mapping; the inner set of a field is nil if it is not
// a mapping.
type fieldSet interface {
	size() int
	has(name string) bool
	names() []string
	inside(name string) fieldSet
}

func (fs structFields) size() int { return len(fs) }

func (fs structFields) has(name string) bool {
	_, known := fs.find(name)
	return known
}

func (fs structFields) inside(name string) fieldSet {
	f, _ := fs.find(name)
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return structFields(nil)
	}
	return fieldsOf(t)
}

type fault struct {
	at      *document.FieldPath
	message string
}

// path returns the path of the first steps.
func (c *Comparison) path(depth int) *document.FieldPath {
	p := c.top
	for _, s := range c.steps[:depth] {
		p = p.Step(s)
	}
	return p
}

// expect records that a value with the form want was expected; nothing if want is empty.
func (c *Comparison) expect(want string) {
	if want == "" {
		return
	}
	c.wrong = true
	if c.collects && !c.enough() {
		c.faults = append(c.faults, fault{c.path(len(c.steps)), "must be " + want})
	}
}

func (c *Comparison) below(s document.Step, v any, t reflect.Type) {
	c.steps = append(c.steps, s)
	c.value(v, t)
	c.steps = c.steps[:len(c.steps)-1]
}

func (c *Comparison) value(v any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if check, special := specialTypes[t]; special {
			c.expect(check(v))
		} else if fields := fieldsOf(t); len(fields) > 0 { // without fields it decodes itself, and accepts other values
			c.structure(v, fields)
		}
	case reflect.Slice:
		c.list(v, t.Elem())
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			c.expect("a mapping, not " + document.Describe(v))
		}
		c.each(m, func(key string, value any) { c.below(document.Step{Key: key}, value, t.Elem()) })
	default:
		c.expect(scalarFault(v, t.Kind()))
	}
}

func (c *Comparison) structure(v any, fields structFields) {
	m, ok := v.(map[string]any)
	if !ok {
		c.expect("a mapping, not " + document.Describe(v))
		return
	}
	c.levels = append(c.levels, level{len(c.steps), fields})
	c.each(m, func(key string, value any) {
		if f, known := fields.find(key); known {
			c.below(document.Step{Key: key}, value, f.typ)
		} else {
			c.unknown(key)
		}
	})
	c.levels = c.levels[:len(c.levels)-1]
}

func (c *Comparison) list(v any, of reflect.Type) {
	if of.Kind() == reflect.Uint8 {
		if _, text := v.(string); !text {
			c.expect("text in base64, not " + document.Describe(v))
		}
		return
	}
	items, ok := v.([]any)
	if !ok {
		c.expect("a list, not " + document.Describe(v))
		return
	}
	for i, item := range items {
		if c.enough() {
			return
		}
		c.below(document.Step{Index: i}, item, of)
	}
}

func (c *Comparison) unknown(key string) {
	c.wrong = true
	if !c.collects || c.enough() {
		return
	}
	here := c.path(len(c.steps))
	at, message := here.Child(key), "unknown field"
	if c.secret && !document.IsWord(key) {
		at = here // an unknown key may be a secret value
	}
	if meant := c.suggestion(key, here); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	c.faults = append(c.faults, fault{at, message})
}

// Longer words, and mappings with more fields, get no suggestion: they are not written by hand,
// and the search would take long.
const (
	maxMeantKey    = 64
	maxMeantFields = 256
)

// suggestion returns the field that the user probably meant by an unknown one: one with a
// similar name in the same mapping, or with the same name in a mapping nearby, since the
// indentation may be wrong.
func (c *Comparison) suggestion(key string, here *document.FieldPath) string {
	last := len(c.levels) - 1
	fields := c.levels[last].fields
	if len(key) > maxMeantKey || fields.size() > maxMeantFields {
		return ""
	}
	if best := api.Closest(key, fields.names()); best != "" {
		return best
	}
	for _, name := range fields.names() {
		if fields.inside(name).has(key) {
			return here.Child(name, key).String()
		}
	}
	for _, l := range slices.Backward(c.levels[:last]) {
		if l.fields.has(key) {
			return c.path(l.depth).Child(key).String()
		}
	}
	return ""
}
