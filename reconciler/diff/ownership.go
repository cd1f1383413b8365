package diff

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func throughSubresources(entries []metav1.ManagedFieldsEntry) *fieldpath.Set {
	return union(entries, func(e *metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
}

// union returns the union of the fields of some entries.
func union(entries []metav1.ManagedFieldsEntry, some func(*metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	all := fieldpath.NewSet()
	for i := range entries {
		if some(&entries[i]) {
			all = all.Union(fieldsOf(&entries[i]))
		}
	}
	return all
}

// fieldsOf returns the fields of an entry; none if they are invalid.
func fieldsOf(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil || set.FromJSON(e.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// Shared reports whether somebody else owns fields that a manager has applied too, so that they
// would stay if the manager no longer applied them.
func Shared(entries []metav1.ManagedFieldsEntry, manager string) bool {
	var ours *fieldpath.Set
	for i := range entries {
		e := &entries[i]
		if applied(e, manager) || byContract(e) {
			continue
		}
		if ours == nil {
			own := entryOf(entries, manager)
			if own == nil {
				return false
			}
			ours = fieldsOf(own)
		}
		if anyOverlap(ours, fieldsOf(e)) {
			return true
		}
	}
	return false
}

// owned is the ownership of the fields below one position of a live object. It also replaces
// the schema: a list is merged by the keys under which its items are owned.
type owned struct {
	all, ours, others *fieldpath.Set
	// atomic: this position or one above it is owned as a whole.
	atomic bool
}

func ownership(entries []metav1.ManagedFieldsEntry, manager string) owned {
	ours := union(entries, func(e *metav1.ManagedFieldsEntry) bool { return applied(e, manager) })
	others := union(entries, func(e *metav1.ManagedFieldsEntry) bool { return !applied(e, manager) })
	return owned{all: ours.Union(others), ours: ours, others: others}
}

// descend returns the ownership at a path element.
func (o owned) descend(e fieldpath.PathElement) owned {
	all := child(o.all, e)
	return owned{
		all: all, ours: child(o.ours, e), others: child(o.others, e),
		atomic: o.atomic || o.all.Members.Has(e) && all.Empty(),
	}
}

// onlyOurs reports whether a part of the value would be removed if it were no longer applied,
// because only gitfleet owns it. A field is owned if anything below it is; a list item has to
// be owned itself.
func (o owned) onlyOurs(e fieldpath.PathElement) bool {
	if e.FieldName == nil {
		return o.onlyOurItem(e)
	}
	return holds(o.ours, e) && !holds(o.others, e)
}

// remainder returns what remains of a value if no part of it is applied any more; nil if
// nothing remains.
func (o owned) remainder(v any) any {
	if o.ours.Empty() {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if m := o.remainderOfFields(v); len(m) > 0 || len(v) == 0 {
			return m
		}
		return nil
	case []any:
		l, m := make([]any, 0, len(v)), o.merging()
		for i, item := range v {
			e := m.element(i, item)
			if o.onlyOurs(e) {
				continue
			}
			if left := o.descend(e).remainder(item); left != nil || item == nil {
				l = append(l, left)
			}
		}
		if len(l) > 0 || len(v) == 0 {
			return l
		}
		return nil
	default:
		return v
	}
}

// remainderOfFields is remainder for each field of a map.
func (o owned) remainderOfFields(v map[string]any) map[string]any {
	m := make(map[string]any, len(v))
	for key, field := range v {
		e := name(key)
		if o.onlyOurs(e) {
			continue
		}
		if left := o.descend(e).remainder(field); left != nil {
			m[key] = left
		}
	}
	return m
}

// A merging says how a list is merged: by the keys of its items, by value if set is true, or
// not at all.
type merging struct {
	keys []string
	set  bool
}

// merging returns how the list at this point is merged, according to the ownership of its
// items.
func (o owned) merging() merging {
	var m merging
	look := func(e fieldpath.PathElement) {
		if e.Key != nil && m.keys == nil {
			for _, f := range *e.Key {
				m.keys = append(m.keys, f.Name)
			}
		}
		m.set = m.set || e.Value != nil
	}
	o.all.Members.Iterate(look)
	o.all.Children.Iterate(look)
	return m
}

// element returns the path element that selects an item.
func (m merging) element(i int, item any) fieldpath.PathElement {
	fields, ok := item.(map[string]any)
	switch {
	case m.set:
		return fieldpath.ValueElement(value.NewValueInterface(item))
	case m.keys != nil && ok:
		var key []value.Field
		for _, name := range m.keys {
			v, written := fields[name]
			if !written {
				v = keyDefaults[name]
			}
			key = append(key, value.Field{Name: name, Value: value.NewValueInterface(v)})
		}
		return fieldpath.KeyElement(key...)
	default:
		return fieldpath.IndexElement(i)
	}
}

func child(s *fieldpath.Set, e fieldpath.PathElement) *fieldpath.Set {
	if sub, ok := s.Children.Get(e); ok {
		return sub
	}
	return fieldpath.NewSet()
}

func holds(s *fieldpath.Set, e fieldpath.PathElement) bool {
	return s.Members.Has(e) || !child(s, e).Empty()
}

// element returns the item of a list that a path element selects, or nil.
func element(list any, e fieldpath.PathElement) any {
	items, _ := list.([]any)
	for i, item := range items {
		if selects(e, item) || e.Index != nil && *e.Index == i {
			return item
		}
	}
	return nil
}

// partOf returns the field of a map or the item of a list that a path element selects, or nil.
func partOf(v any, e fieldpath.PathElement) any {
	if e.FieldName != nil {
		return field(v, *e.FieldName)
	}
	return element(v, e)
}

// selects reports whether a path element names this item by key or by value.
func selects(e fieldpath.PathElement, item any) bool {
	if e.Value != nil {
		return scalar(item) && normalized((*e.Value).Unstructured()) == normalized(item)
	}
	m, ok := item.(map[string]any)
	if e.Key == nil || !ok {
		return false
	}
	for _, f := range *e.Key {
		have, set := m[f.Name]
		if !set {
			have = keyDefaults[f.Name]
		}
		if !scalar(have) || normalized(have) != normalized(f.Value.Unstructured()) {
			return false
		}
	}
	return true
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func name(key string) fieldpath.PathElement { return fieldpath.FieldNameElement(key) }

// field returns a field of a map, or nil.
func field(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

// entryOf returns the managedFields entry of a manager's server-side apply; nil if there is none.
func entryOf(entries []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range entries {
		if applied(&entries[i], manager) {
			return &entries[i]
		}
	}
	return nil
}

// applied reports whether an entry belongs to the manager's apply. An object has at most one,
// whatever its API version.
func applied(e *metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// anyOverlap reports whether two sets have a common field.
func anyOverlap(a, b *fieldpath.Set) bool {
	found := false
	look := func(e fieldpath.PathElement) { found = found || overlap(a, b, e) }
	a.Members.Iterate(look)
	a.Children.Iterate(look)
	return found
}

// onlyOurItem reports whether only gitfleet owns an item, a map or a list itself, whatever others own below it: the
// server would remove it with all that is in it.
func (o owned) onlyOurItem(e fieldpath.PathElement) bool {
	return o.ours.Members.Has(e) && !o.others.Members.Has(e)
}

// keyDefaults are the defaults of keys that are not set.
var keyDefaults = map[string]any{"protocol": "TCP"}

func joined(a, b *fieldpath.Set) *fieldpath.Set {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return a.Union(b)
}

// index parses an index of a list of n items.
func index(key string, n int) (i int, ok bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && i < n
}

// controlPlane are the field managers of the control plane, which is one process in K3s and MicroK8s.
var controlPlane = map[string]bool{
	"cloud-controller-manager": true, "kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kubelet": true,
	"k3s": true, "kubelite": true,
}

// byContract reports whether a part of Kubernetes itself owns the fields of an entry.
func byContract(e *metav1.ManagedFieldsEntry) bool {
	return e.Subresource != "" || controlPlane[e.Manager]
}

// overlap reports whether two sets have a common field at or below a path element. A field that is
// owned as a whole overlaps with everything in it.
func overlap(a, b *fieldpath.Set, e fieldpath.PathElement) bool {
	aHas, bHas := a.Members.Has(e), b.Members.Has(e)
	inA, inB := child(a, e), child(b, e)
	switch {
	case aHas && bHas:
		return true
	case aHas && inA.Empty() && !inB.Empty(), bHas && inB.Empty() && !inA.Empty():
		return true
	}
	return anyOverlap(inA, inB)
}

// only returns the part of a set at or below a path element.
func only(s *fieldpath.Set, e fieldpath.PathElement) *fieldpath.Set {
	out := fieldpath.NewSet()
	if s.Members.Has(e) {
		out.Members.Insert(e)
	}
	child(s, e).Iterate(func(path fieldpath.Path) { out.Insert(append(fieldpath.Path{e}, path...)) })
	return out
}
