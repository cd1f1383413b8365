package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/api"
)

// OwnershipPatch returns a JSON patch of the live object after which a manager alone owns the fields of a
// removal. It changes nothing but managedFields, and fails with a conflict if the object has been changed
// since it was read.
func (r Removal) OwnershipPatch(live *unstructured.Unstructured, manager string) ([]byte, error) {
	var entries []metav1.ManagedFieldsEntry
	managed := live.GetManagedFields()
	if entryOf(managed, manager) == nil {
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(), FieldsType: "FieldsV1",
		})
	}
	for _, e := range managed {
		set := fieldsOf(&e)
		switch {
		case applied(&e, manager):
			set = set.Union(r.toOwn)
		case e.Subresource == "":
			if set = set.Difference(r.toOwn); set.Empty() {
				continue
			}
		default:
			continue
		}
		raw, err := set.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("encode the fields of %s: %w", e.Manager, err)
		}
		e.FieldsV1 = metav1.NewFieldsV1(string(raw))
		entries = append(entries, e)
	}
	return OwnersPatch(live, entries)
}

// OwnersPatch returns a JSON patch of the live object after which its fields have the given owners, and what was written through
// subresources those that it has now. It changes nothing but
// managedFields, and fails with a conflict if the object has been changed since it was read.
func OwnersPatch(live *unstructured.Unstructured, owners []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": slices.Concat(direct(owners), slices.DeleteFunc(live.GetManagedFields(), isDirect))}, unchangedSince(live),
	})
}

// SameOwners reports whether the fields of two versions of an object have the same owners, apart from what is written through
// subresources.
func SameOwners(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(direct(a.GetManagedFields()), direct(b.GetManagedFields()))
}

// direct returns the entries of managedFields that are not of a subresource.
func direct(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return !isDirect(e) })
}

func isDirect(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "" }

// unchangedSince returns the operation that makes a JSON patch fail with a conflict if the object has been changed since
// it was read.
func unchangedSince(live *unstructured.Unstructured) map[string]any {
	// "replace" makes the server answer with a conflict, and "test" with an invalid request
	return map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}
}

// Recorded returns what is known of the object that was applied last from recorded drift of the live object:
// the fields that Git had and that somebody has changed, except fields in lists, whose items may have moved
// since. Their values are those of live. nil means that nothing is known.
func Recorded(live *unstructured.Unstructured, drift []api.Difference) *unstructured.Unstructured {
	out := map[string]any{}
	for _, d := range drift {
		path := api.SplitPointer(d.Path)
		value, there, err := unstructured.NestedFieldCopy(live.Object, path...) // an error below a list
		if d.ValueInHub == "" || !there || err != nil || unstructured.SetNestedField(out, value, path...) != nil {
			continue
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &unstructured.Unstructured{Object: out}
}

// Without returns an object without the fields of a removal that would go.
func (r Removal) Without(o *unstructured.Unstructured) *unstructured.Unstructured {
	if r.Empty() {
		return o
	}
	return without(o, r.roots)
}

// Kept returns the fields that stay because of their owners, as Left has them.
func (r Removal) Kept() Left { return leftOf(r.kept) }

// All returns the fields of a removal, as Left has them.
func (r Removal) All() Left { return leftOf(joined(r.roots, r.kept)) }

// Left are fields and list items of an object that Git has removed and that may still be there, as
// text: the JSON of a field set; empty if there are none.
type Left string

func leftOf(set *fieldpath.Set) Left {
	if set == nil || set.Empty() {
		return ""
	}
	raw, err := set.ToJSON()
	if err != nil {
		return ""
	}
	return Left(raw)
}

// Fields returns the fields as a set; nil if there are none.
func (l Left) Fields() *fieldpath.Set {
	if l == "" {
		return nil
	}
	set := fieldpath.NewSet()
	if set.FromJSON(bytes.NewReader([]byte(l))) != nil {
		return nil
	}
	return set
}

// And returns the fields of both.
func (l Left) And(o Left) Left { return leftOf(joined(l.Fields(), o.Fields())) }

// In returns those of the fields that a live object has and a desired one does not set.
func (l Left) In(live, desired *unstructured.Unstructured) Left {
	set, still := l.Fields(), fieldpath.NewSet()
	if set == nil || live == nil {
		return ""
	}
	set.Iterate(func(path fieldpath.Path) {
		_, _, there := locate(live.Object, path)
		if _, v, wanted := locate(desired.Object, path); there && (!wanted || v == nil) {
			still.Insert(path)
		}
	})
	return leftOf(still)
}

// Owned returns those of the fields that somebody owns in a live object. Of a field that
// was taken over and applied without it, nobody owns what is there afterwards: it is a default.
func (l Left) Owned(live *unstructured.Unstructured) Left {
	set, still := l.Fields(), fieldpath.NewSet()
	if set == nil {
		return ""
	}
	all := union(live.GetManagedFields(), func(*metav1.ManagedFieldsEntry) bool { return true })
	set.Iterate(func(path fieldpath.Path) {
		above, last := all, path[len(path)-1]
		for _, e := range path[:len(path)-1] {
			if next := child(above, e); !next.Empty() || !above.Members.Has(e) {
				above = next
			} else {
				still.Insert(path) // it is owned with something that is owned as a whole
				return
			}
		}
		if holds(above, last) {
			still.Insert(path)
		}
	})
	return leftOf(still)
}

// Differences returns the fields as differences of a live object that has them, with their owners.
// Values of Secrets are masked.
func (l Left) Differences(live *unstructured.Unstructured, manager string) []api.Difference {
	set := l.Fields()
	if set == nil || live == nil {
		return nil
	}
	return Differences(live, manager, Compare(without(live, set), live, Options{}))
}

// without returns a copy of an object without some fields.
func without(o *unstructured.Unstructured, fields *fieldpath.Set) *unstructured.Unstructured {
	out := o.DeepCopy()
	fields.Iterate(func(path fieldpath.Path) { removeField(out.Object, path) })
	return out
}

// removeField removes a field or list item from a value, and returns the value.
func removeField(v any, path fieldpath.Path) any {
	e, last := path[0], len(path) == 1
	switch v := v.(type) {
	case map[string]any:
		if e.FieldName == nil {
			return v
		}
		if last {
			delete(v, *e.FieldName)
		} else if field, has := v[*e.FieldName]; has {
			v[*e.FieldName] = removeField(field, path[1:])
		}
	case []any:
		i := slices.IndexFunc(v, func(item any) bool { return selects(e, item) })
		switch {
		case i < 0:
		case last:
			return slices.Delete(v, i, i+1)
		default:
			v[i] = removeField(v[i], path[1:])
		}
	}
	return v
}
