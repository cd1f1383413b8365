package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An apply changes no field that is left to others: not below lists and maps that the server
// replaces as a whole, whoever owns them, whatever others have written, and not if they write
// between the read and the apply. All other fields are applied, and ignored fields are no difference.
func TestAnApplyChangesNoFieldThatIsLeft(t *testing.T) { rapid.Check(t, applyChangesNoFieldThatIsLeft) }

func FuzzAnApplyChangesNoFieldThatIsLeft(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(applyChangesNoFieldThatIsLeft))
}

func applyChangesNoFieldThatIsLeft(t *rapid.T) {
	shape := drawShape(t, 3, "spec")
	c := newCustom(t, shape)
	manifest := c.object(shape.draw(t, "manifest").(map[string]any))
	if rapid.Bool().Draw(t, "exists before") {
		c.update("somebody", shape.draw(t, "before"))
	} else {
		c.apply(t, "creator", c.object(runtime.DeepCopyJSON(manifest.Object)["spec"].(map[string]any)))
	}
	if rapid.Bool().Draw(t, "without managed fields") {
		c.live.SetManagedFields(nil)
	}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "Git changes") {
			manifest = c.object(shape.change(t, runtime.DeepCopyJSON(manifest.Object)["spec"]).(map[string]any))
		}
		c.writeAsSomebody(t, shape)
		pointers := drawPointers(t, manifest, c.live)
		ask := strings.Join(pointers, " ")
		manifest.SetAnnotations(map[string]string{api.IgnoreFieldsAnnotation: ask})

		var sent, before *unstructured.Unstructured
		for {
			var err error
			before = c.live.DeepCopy()
			if sent, err = Leave(manifest, before, pointers, api.FieldManager); err != nil {
				return // nothing is sent
			}
			if rapid.IntRange(0, 3).Draw(t, "race") == 0 {
				c.writeAsSomebody(t, shape)
			}
			if version := sent.GetResourceVersion(); version == "" || version == c.live.GetResourceVersion() {
				before = c.live.DeepCopy()
				break
			}
		}
		c.apply(t, api.FieldManager, sent)
		for _, pointer := range pointers {
			checkKept(t, manifest.Object, before.Object, c.live.Object, api.SplitPointer(pointer), pointer)
		}
		if t.Failed() {
			t.Fatalf("left %q of\n%v\nsent\n%v\nbefore\n%v\nafter\n%v\nowned %s", ask, manifest.Object["spec"], sent.Object["spec"], before.Object["spec"], c.live.Object["spec"], owners(before))
		}
		again, err := Leave(manifest, c.live, pointers, api.FieldManager)
		if err != nil {
			t.Fatal(err)
		}
		again.SetResourceVersion("")
		for name, hub := range map[string]*unstructured.Unstructured{"manifest": manifest, "dry run": c.dryRun(t, api.FieldManager, again)} {
			if d := Compare(hub, c.live, Options{Structural: name == "manifest"}); len(d) > 0 {
				t.Fatalf("%s: left %q of\n%v\nsent\n%v\nbefore\n%v\nafter\n%v\ndiffers %v", name, ask, manifest.Object["spec"], sent.Object["spec"], before.Object["spec"], c.live.Object["spec"], d)
			}
		}
	}
}

func owners(o *unstructured.Unstructured) (text string) {
	for _, e := range o.GetManagedFields() {
		text += fmt.Sprintf("%s %s %s; ", e.Manager, e.Operation, e.FieldsV1.GetRawString())
	}
	return text
}

// checkKept checks that the value at a path of the manifest is the same before and after, where
// it is clear which items of lists it belongs to: those of the same name.
func checkKept(t *rapid.T, manifest, before, after any, path []string, pointer string) {
	same := func(a, b any) {
		if !reflect.DeepEqual(normalized(a), normalized(b)) {
			t.Errorf("%s was %v, and is %v", pointer, a, b)
		}
	}
	if m, ok := manifest.([]any); ok {
		i, ok := index(path[0], len(m))
		if !ok {
			return
		}
		b, wasThere := named(before, field(m[i], "name"))
		a, _ := named(after, field(m[i], "name"))
		switch {
		case field(m[i], "name") == nil || !wasThere:
		case len(path) == 1:
			same(b, a)
		default:
			checkKept(t, m[i], b, a, path[1:], pointer)
		}
		return
	}
	b, wasThere := before.(map[string]any)
	switch there := field(manifest, path[0]); {
	case !wasThere:
	case len(path) == 1:
		same(b[path[0]], field(after, path[0]))
	default:
		checkKept(t, there, b[path[0]], field(after, path[0]), path[1:], pointer)
	}
}

func named(list, name any) (any, bool) {
	items, _ := list.([]any)
	for _, item := range items {
		if field(item, "name") == name {
			return item, true
		}
	}
	return nil, false
}

// drawPointers draws pointers to fields below spec of two objects.
func drawPointers(t *rapid.T, a, b *unstructured.Unstructured) []string {
	all := map[string]bool{}
	addPointers(a.Object["spec"], "/spec", all)
	fromLive := map[string]bool{}
	addPointers(b.Object["spec"], "/spec", fromLive)
	for _, p := range slices.Sorted(maps.Keys(fromLive)) {
		if rapid.IntRange(0, 4).Draw(t, "live "+p) == 0 {
			all[p] = true
		}
	}
	if len(all) == 0 {
		return []string{"/spec/none"}
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), 1, 3, rapid.ID[string]).Draw(t, "pointers")
}

func addPointers(v any, at string, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			if _, item := v["name"]; key == "name" && item {
				continue // an item whose name is left cannot be told apart
			}
			to[at+"/"+key] = true
			addPointers(field, at+"/"+key, to)
		}
	case []any:
		for i, item := range v {
			if !scalar(item) {
				addPointers(item, at+"/"+strconv.Itoa(i), to)
			}
		}
	}
}

// A shape is the schema of a value of which random values can be drawn.
type shape struct {
	kind   string // see shapes
	fields map[string]*shape
	item   *shape
}

var shapes = []string{"number", "struct", "atomic struct", "map", "atomic map", "keyed list", "atomic list", "set", "untyped"}

func drawShape(t *rapid.T, depth int, label string) *shape {
	s := &shape{kind: rapid.SampledFrom(shapes).Draw(t, label)}
	switch {
	case label == "spec":
		s.kind = "struct"
	case depth == 0:
		s.kind = "number"
	}
	switch s.kind {
	case "struct", "atomic struct":
		s.fields = drawFields(t, depth, label)
	case "map", "atomic map":
		s.item = drawShape(t, depth-1, label+".*")
	case "keyed list", "atomic list":
		s.item = &shape{kind: "struct", fields: drawFields(t, depth, label+"[]")}
	case "untyped":
		s.item = &shape{kind: "struct", fields: map[string]*shape{"n": {kind: "number"}, "x": {kind: "number"}}}
	}
	return s
}

func drawFields(t *rapid.T, depth int, label string) map[string]*shape {
	fields := map[string]*shape{"n": {kind: "number"}}
	for _, name := range []string{"a", "b", "c"} {
		fields[name] = drawShape(t, depth-1, label+"."+name)
	}
	return fields
}

func (s *shape) schema() spec.Schema {
	whole, list := *spec.MapProperty(nil), *spec.ArrayProperty(nil)
	whole.AdditionalProperties = nil
	switch s.kind {
	case "number":
		return *spec.Int64Property()
	case "struct", "atomic struct":
		whole.Properties = map[string]spec.Schema{}
		for name, field := range s.fields {
			whole.Properties[name] = field.schema()
		}
		if s.kind == "atomic struct" {
			whole.AddExtension("x-kubernetes-map-type", "atomic")
		}
		return whole
	case "map", "atomic map":
		item := s.item.schema()
		whole.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &item}
		if s.kind == "atomic map" {
			whole.AddExtension("x-kubernetes-map-type", "atomic")
		}
		return whole
	case "untyped":
		whole.AddExtension("x-kubernetes-preserve-unknown-fields", true)
		return whole
	case "set":
		list.Items = &spec.SchemaOrArray{Schema: spec.Int64Property()}
		list.AddExtension("x-kubernetes-list-type", "set")
		return list
	default:
		item := s.item.schema()
		item.Properties["name"] = *spec.StringProperty()
		list.Items = &spec.SchemaOrArray{Schema: &item}
		if s.kind == "keyed list" {
			list.AddExtension("x-kubernetes-list-type", "map")
			list.AddExtension("x-kubernetes-list-map-keys", []any{"name"})
		} else {
			list.AddExtension("x-kubernetes-list-type", "atomic")
		}
		return list
	}
}

// draw draws a value.
func (s *shape) draw(t *rapid.T, label string) any {
	keys := func(n int) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s"}), 1, n, rapid.ID[string]).Draw(t, label+" keys")
	}
	switch s.kind {
	case "number":
		return rapid.Int64Range(1, 99).Draw(t, label)
	case "struct", "atomic struct":
		m := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.fields)) {
			if name == "n" || rapid.IntRange(0, 3).Draw(t, label+" has "+name) > 0 {
				m[name] = s.fields[name].draw(t, label+"."+name)
			}
		}
		return m
	case "map", "atomic map":
		m := map[string]any{}
		for _, key := range keys(3) {
			m[key] = s.item.draw(t, label+"."+key)
		}
		return m
	case "untyped":
		if rapid.Bool().Draw(t, label+" is a map") {
			return s.item.draw(t, label)
		}
		return map[string]any{"list": []any{s.item.draw(t, label+"[0]")}}
	case "set":
		var l []any
		for _, n := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 5), 1, 3, rapid.ID[int64]).Draw(t, label) {
			l = append(l, n)
		}
		return l
	default:
		var l []any
		for _, key := range keys(3) {
			item := s.item.draw(t, label+"["+key+"]").(map[string]any)
			item["name"] = key
			l = append(l, item)
		}
		return l
	}
}

// change draws another value that has much in common with one.
func (s *shape) change(t *rapid.T, v any) any {
	if v == nil || rapid.IntRange(0, 5).Draw(t, "replace") == 0 && s.kind != "struct" {
		return s.draw(t, "new")
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			field := s.item
			if s.fields != nil {
				field = s.fields[name]
			}
			switch {
			case name == "name" || field == nil || s.kind == "untyped":
			case len(v) > 1 && rapid.IntRange(0, 7).Draw(t, "drop "+name) == 0: // a server handles empty maps in several ways
				delete(v, name)
			case rapid.Bool().Draw(t, "change "+name):
				v[name] = field.change(t, v[name])
			}
		}
	case []any:
		for i := range v {
			if s.item != nil && rapid.Bool().Draw(t, "change item") {
				v[i] = s.item.change(t, v[i])
			}
		}
		if len(v) > 1 && rapid.IntRange(0, 3).Draw(t, "swap") == 0 {
			v[0], v[1] = v[1], v[0]
		}
	case int64:
		return s.draw(t, "number")
	}
	return v
}

// A custom is a server that stores one object of a custom kind.
type custom struct {
	fields *managedfields.FieldManager
	live   *unstructured.Unstructured
	count  int
}

func newCustom(t *rapid.T, s *shape) *custom {
	whole := *spec.MapProperty(nil)
	whole.AdditionalProperties = nil
	meta := *spec.MapProperty(nil)
	meta.AdditionalProperties = nil
	meta.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	always := s.schema()
	always.Properties["always"] = *spec.Int64Property()
	whole.Properties = map[string]spec.Schema{"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(), "metadata": meta, "spec": always}
	whole.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Gadget"}})
	types, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"gadget": &whole}, false)
	if err != nil {
		t.Fatal(err)
	}
	c := &custom{}
	c.live = c.object(nil)
	gvk := c.live.GroupVersionKind()
	if c.fields, err = managedfields.NewDefaultCRDFieldManager(types, identityConvertor{}, identityConvertor{}, identityConvertor{}, gvk, gvk.GroupVersion(), "", nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *custom) object(spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "one"},
	}}
	if spec != nil {
		spec["always"] = int64(1)
		o.Object["spec"] = spec
	}
	return o
}

func (c *custom) dryRun(t *rapid.T, manager string, o *unstructured.Unstructured) *unstructured.Unstructured {
	sent := o.DeepCopy()
	sent.SetResourceVersion("")
	live := c.live.DeepCopy()
	live.SetResourceVersion("")
	out, err := c.fields.Apply(live, sent, manager, true)
	if err != nil {
		t.Fatalf("apply %v to %v: %v", sent.Object, live.Object, err)
	}
	return out.(*unstructured.Unstructured)
}

// apply is a forced server-side apply.
func (c *custom) apply(t *rapid.T, manager string, o *unstructured.Unstructured) {
	c.store(c.dryRun(t, manager, o))
}

func (c *custom) update(manager string, spec any) {
	changed := c.live.DeepCopy()
	changed.Object["spec"] = spec
	live := c.live.DeepCopy()
	live.SetResourceVersion("")
	changed.SetResourceVersion("")
	out, err := c.fields.Update(live, changed, manager)
	if err != nil {
		panic(err)
	}
	c.store(out.(*unstructured.Unstructured))
}

func (c *custom) store(o *unstructured.Unstructured) {
	c.count++
	c.live = o
	c.live.SetResourceVersion(strconv.Itoa(c.count))
}

// writeAsSomebody writes the object as others do: by an update, or by an apply of parts of it.
func (c *custom) writeAsSomebody(t *rapid.T, s *shape) {
	spec := c.live.DeepCopy().Object["spec"]
	manager := rapid.SampledFrom([]string{"canary", "kubectl-edit"}).Draw(t, "manager")
	switch rapid.IntRange(0, 2).Draw(t, "write") {
	case 0:
		c.update(manager, s.change(t, spec))
	case 1:
		if next, ok := s.change(t, spec).(map[string]any); ok {
			c.apply(t, manager, c.object(next))
		}
	}
}
