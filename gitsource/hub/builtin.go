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

// kubernetesVersion is the one whose kinds manifests are compared with: that of
// the libraries.
const kubernetesVersion = "1.37"

// judgeBuiltin compares the object at p, if its kind is one of Kubernetes, with
// the Go type of that kind, and warns of fields the type does not have and of
// values it cannot hold. It refuses nothing, since a member may be newer, and
// repeats no value.
func judgeBuiltin(r *report, p *fieldPath, object map[string]any) {
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
		judgeUnknownKind(r, p, gv.WithKind(kind))
	default: // metadata are those of every kind
		c.search(func() { c.below(step{key: "metadata"}, object["metadata"], reflect.TypeFor[metav1.ObjectMeta]()) })
	}
	c.tell(r, "Kubernetes "+kubernetesVersion)
}

// tell warns of what was found, and says what it was found by.
func (c *comparison) tell(r *report, by string) {
	slices.SortFunc(c.faults, func(a, b fault) int { return strings.Compare(a.at.String(), b.at.String()) })
	for _, f := range c.faults {
		r.warnf(f.at, "%s (checked against %s)", f.message, by)
	}
}

// judgeUnknownKind speaks of a kind, or a version of one, that a group of
// Kubernetes does not have.
func judgeUnknownKind(r *report, p *fieldPath, gvk schema.GroupVersionKind) {
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

// A comparison finds where a value differs in shape from a Go type. Most do not,
// so it goes through them without leaving anything behind.
type comparison struct {
	// top is where the object stands in its document.
	top *fieldPath
	// secret says that the object is a Secret.
	secret bool

	// wrong says that there is a fault; once it is known, faults are gathered.
	wrong, gathers bool

	steps  []step
	levels []level
	faults []fault
}

// search looks once for any fault, which costs little and mostly finds none, and
// then for those that are told: the first ones, in order.
func (c *comparison) search(look func()) {
	look()
	if c.wrong {
		c.gathers = true
		look()
	}
}

// enough reports whether nothing more needs to be looked at.
func (c *comparison) enough() bool {
	return c.wrong && !c.gathers || len(c.faults) > maxProblems
}

// each visits what a mapping has, in order if faults are gathered.
func (c *comparison) each(m map[string]any, visit func(key string, value any)) {
	if c.gathers {
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

// A level is a mapping on the way to a value: below how many steps, and which
// fields its type has.
type level struct {
	depth  int
	fields fieldSet
}

// A fieldSet is the fields that a mapping may have. What is inside a field that
// is no mapping is nothing.
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

// path is where the first steps lead.
func (c *comparison) path(depth int) *fieldPath {
	p := c.top
	for _, s := range c.steps[:depth] {
		p = &fieldPath{up: p, key: s.key, index: s.index}
	}
	return p
}

// must notes that the value here is not what it has to be; nothing if want is
// empty.
func (c *comparison) must(want string) {
	if want == "" {
		return
	}
	c.wrong = true
	if c.gathers && !c.enough() {
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
			c.must(check(v))
		} else if fields := fieldsOf(t); len(fields) > 0 { // or it decodes itself, and takes more than it says
			c.structure(v, fields)
		}
	case reflect.Slice:
		c.list(v, t.Elem())
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			c.must("a mapping, not " + describe(v))
		}
		c.each(m, func(key string, value any) { c.below(step{key: key}, value, t.Elem()) })
	default:
		c.must(scalarFault(v, t.Kind()))
	}
}

func (c *comparison) structure(v any, fields structFields) {
	m, ok := v.(map[string]any)
	if !ok {
		c.must("a mapping, not " + describe(v))
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
			c.must("text in base64, not " + describe(v))
		}
		return
	}
	items, ok := v.([]any)
	if !ok {
		c.must("a list, not " + describe(v))
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
	if !c.gathers || c.enough() {
		return
	}
	here := c.path(len(c.steps))
	at, message := here.child(key), "unknown field"
	if c.secret && !isWord(key) {
		at = here // what looks like a key may be a value
	}
	if meant := c.meant(key, here); meant != "" {
		message += "; did you mean " + meant + "?"
	}
	c.faults = append(c.faults, fault{at, message})
}

// What is longer, and mappings of more fields, are not searched for what was
// meant: nobody writes them by hand, and it would take long.
const (
	maxMeantKey    = 64
	maxMeantFields = 256
)

// meant is the field that was most likely meant by an unknown one: of a similar
// name here, or of the same name nearby, where indentation puts it by mistake.
func (c *comparison) meant(key string, here *fieldPath) string {
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
