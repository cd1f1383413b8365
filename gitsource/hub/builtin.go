package hub

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetes "k8s.io/client-go/kubernetes/scheme"

	"github.com/gitfleet/gitfleet/placement/api"
)

// kubernetesVersion is the version of the libraries, whose types manifests are compared with.
const kubernetesVersion = "1.37"

// checkBuiltin compares the object at p, if its kind is built into Kubernetes, with the Go type
// of that kind, and warns of unknown fields and invalid values. It refuses nothing, since a
// member may be newer, and quotes no value.
func checkBuiltin(r *report, p *fieldPath, object map[string]any) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || kind == "" {
		return
	}
	c := &comparison{top: p, secret: gv.Group == "" && kind == "Secret"}
	t, known := kubernetes.Scheme.AllKnownTypes()[gv.WithKind(kind)]
	switch {
	case known:
		c.search(func() { c.value(object, t) })
	case kubernetes.Scheme.IsGroupRegistered(gv.Group):
		checkUnknownKind(r, p, gv.WithKind(kind))
	default: // metadata is the same for every kind
		c.search(func() { c.below(step{key: "metadata"}, object["metadata"], reflect.TypeFor[metav1.ObjectMeta]()) })
	}
	c.warn(r, "Kubernetes "+kubernetesVersion)
}

// warn adds the warnings, with what the object was compared with.
func (c *comparison) warn(r *report, by string) {
	slices.SortFunc(c.faults, func(a, b fault) int { return strings.Compare(a.at.String(), b.at.String()) })
	for _, f := range c.faults {
		r.warnf(f.at, "%s (checked against %s)", f.message, by)
	}
}

// checkUnknownKind warns of a kind or version that a group of Kubernetes does not have.
func checkUnknownKind(r *report, p *fieldPath, gvk schema.GroupVersionKind) {
	var kinds, versions []string
	for k := range kubernetes.Scheme.AllKnownTypes() {
		if k.Group != gvk.Group {
			continue
		}
		if k.Kind == gvk.Kind {
			versions = append(versions, k.GroupVersion().String())
		}
		if _, isKind := api.Namespaced(k.GroupKind()); isKind {
			kinds = append(kinds, k.Kind)
		}
	}
	if len(versions) > 0 {
		slices.Sort(versions)
		r.warnf(p.child("apiVersion"), "Kubernetes %s has no %s in %s; it has it in %s",
			kubernetesVersion, gvk.Kind, gvk.GroupVersion(), strings.Join(versions, ", "))
		return
	}
	slices.Sort(kinds)
	if best := api.Closest(gvk.Kind, slices.Compact(kinds)); best != "" {
		r.warnf(p.child("kind"), "Kubernetes %s has no such kind in %s; did you mean %s?", kubernetesVersion, gvk.GroupVersion(), best)
	}
}

// A comparison finds where a value does not fit a Go type. Most values fit, and are compared
// without an allocation.
type comparison struct {
	// top is the position of the object in its document.
	top *fieldPath
	// secret says that the object is a Secret.
	secret bool

	// wrong says that a problem was found; with collects, problems are collected.
	wrong, collects bool

	steps  []step
	levels []level
	faults []fault
}

// search looks for any problem first, which is cheap and usually finds none, and then collects
// the first ones, in order.
func (c *comparison) search(look func()) {
	look()
	if c.wrong {
		c.collects = true
		look()
	}
}

// enough reports whether nothing more needs to be compared.
func (c *comparison) enough() bool {
	return c.wrong && !c.collects || len(c.faults) > maxProblems
}

// each visits the entries of a mapping, in order if problems are collected.
func (c *comparison) each(m map[string]any, visit func(key string, value any)) {
	if c.collects {
		for _, key := range sortedKeys(m) {
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
	at      *fieldPath
	message string
}

// path is the path of the first steps.
func (c *comparison) path(depth int) *fieldPath {
	p := c.top
	for _, s := range c.steps[:depth] {
		p = &fieldPath{up: p, key: s.key, index: s.index}
	}
	return p
}

// expect records that the value does not have the expected form; nothing if want is empty.
func (c *comparison) expect(want string) {
	if want == "" {
		return
	}
	c.wrong = true
	if c.collects && !c.enough() {
		c.faults = append(c.faults, fault{c.path(len(c.steps)), "must be " + want})
	}
}

func (c *comparison) below(s step, v any, t reflect.Type) {
	c.steps = append(c.steps, s)
	c.value(v, t)
	c.steps = c.steps[:len(c.steps)-1]
}

func (c *comparison) value(v any, t reflect.Type) {
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
		} else if fields := fieldsOf(t); len(fields) > 0 { // otherwise it decodes itself, and accepts more than its fields
			c.structure(v, fields)
		}
	case reflect.Slice:
		c.list(v, t.Elem())
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			c.expect("a mapping, not " + describe(v))
		}
		c.each(m, func(key string, value any) { c.below(step{key: key}, value, t.Elem()) })
	default:
		c.expect(scalarFault(v, t.Kind()))
	}
}

func (c *comparison) structure(v any, fields structFields) {
	m, ok := v.(map[string]any)
	if !ok {
		c.expect("a mapping, not " + describe(v))
		return
	}
	c.levels = append(c.levels, level{len(c.steps), fields})
	c.each(m, func(key string, value any) {
		if f, known := fields.find(key); known {
			c.below(step{key: key}, value, f.typ)
		} else {
			c.unknown(key)
		}
	})
	c.levels = c.levels[:len(c.levels)-1]
}

func (c *comparison) list(v any, of reflect.Type) {
	if of.Kind() == reflect.Uint8 {
		if _, text := v.(string); !text {
			c.expect("text in base64, not " + describe(v))
		}
		return
	}
	items, ok := v.([]any)
	if !ok {
		c.expect("a list, not " + describe(v))
		return
	}
	for i, item := range items {
		if c.enough() {
			return
		}
		c.below(step{index: i}, item, of)
	}
}

func (c *comparison) unknown(key string) {
	c.wrong = true
	if !c.collects || c.enough() {
		return
	}
	here := c.path(len(c.steps))
	at, message := here.child(key), "unknown field"
	if c.secret && !isWord(key) {
		at = here // what looks like a key may be a value
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

// suggestion is the field that was probably meant by an unknown one: with a similar name here,
// or with the same name nearby, because of wrong indentation.
func (c *comparison) suggestion(key string, here *fieldPath) string {
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
			return here.child(name, key).String()
		}
	}
	for _, l := range slices.Backward(c.levels[:last]) {
		if l.fields.has(key) {
			return c.path(l.depth).child(key).String()
		}
	}
	return ""
}
