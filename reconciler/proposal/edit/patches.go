package edit

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// maxOperations is the maximum number of operations in a rule of an override.
const maxOperations = 20

// operationsOf returns the operations of a JSON patch that makes edits of an object, by edit. Each edit of an item of a
// list begins with tests of the items on its path, so that it never changes another item that is there by then.
func operationsOf(object map[string]any, edits []yamledit.FieldEdit) ([][]any, error) {
	v := yamledit.Canonical(object)
	var out [][]any
	var tested []map[string]any
	for _, e := range edits {
		var group []any
		for _, step := range listitem.Steps(v, e.Path) {
			path, value := step.Test()
			test := map[string]any{"op": string(api.JSONPatchTest), "path": path, "value": yamledit.Canonical(value)} // apply changes it
			if !slices.ContainsFunc(tested, func(t map[string]any) bool { return reflect.DeepEqual(t, test) }) {
				tested, group = append(tested, test), append(group, test)
			}
			if path == step.Path {
				break // the whole item, with what is in it
			}
		}
		out = append(out, append(group, operationOf(v, e)))
		var err error
		if v, err = yamledit.Apply(v, api.SplitPointer(e.Path), e); err != nil {
			return nil, &yamledit.FieldError{Path: e.Path, Reason: err.Error()}
		}
		if e.Remove { // the items after it have moved
			tested = nil
		}
	}
	return out, nil
}

// operationOf returns the operation of a JSON patch of an object that makes an edit.
func operationOf(object any, e yamledit.FieldEdit) map[string]any {
	if e.Remove {
		return map[string]any{"op": string(api.JSONPatchRemove), "path": e.Path}
	}
	op := api.JSONPatchAdd
	if _, there := yamledit.LookUp(object, api.SplitPointer(e.Path)); there {
		op = api.JSONPatchReplace
	}
	return map[string]any{"op": string(op), "path": e.Path, "value": e.Value}
}

// guarded returns the operations of edits of an object, with a test before each operation that adds a map or a list. The test
// fails once Git sets the field, which the operation would replace. To kustomize a missing field is null, as in the JSON
// patches of Kubernetes.
func guarded(object any, edits []yamledit.FieldEdit, operations [][]any) [][]any {
	out := slices.Clone(operations)
	for i, e := range edits {
		if e.Remove || strings.HasSuffix(e.Path, "/-") || !isNew(object, e) {
			continue
		}
		last := len(out[i]) - 1
		out[i] = slices.Insert(slices.Clone(out[i]), last, any(map[string]any{"op": string(api.JSONPatchTest), "path": e.Path, "value": nil}))
	}
	return out
}

// isNew reports whether an edit is of a map or a list that an object does not have. An operation of a JSON patch would set
// it as a whole, and so overwrite what Git sets in it later.
func isNew(object any, e yamledit.FieldEdit) bool {
	keys := api.SplitPointer(e.Path)
	last := len(keys) - 1
	if _, there := yamledit.LookUp(object, keys[:last]); !there {
		return true
	}
	_, there := yamledit.LookUp(object, keys)
	switch e.Value.(type) {
	case map[string]any, []any:
		return !there && keys[last] != "-"
	}
	return false
}

// mergePatch returns a strategic merge patch that makes edits of an object with an original name, with items of lists by their names; nil if
// no edit is of such an item or of a new map or list, or if there is no such patch. Whether it does what it should depends
// on the kind: the lists of custom resources are replaced.
func mergePatch(source *api.Object, originalName string, edits []yamledit.FieldEdit) map[string]any {
	object := source.Content.Object
	patch := map[string]any{
		"apiVersion": source.Content.GetAPIVersion(), "kind": source.ID.Kind,
		"metadata": map[string]any{"name": originalName},
	}
	needed := false
	for _, e := range edits {
		needed = needed || len(listitem.Steps(object, e.Path)) > 0 || isNew(object, e)
		if !addToMergePatch(patch, yamledit.Canonical(object), api.SplitPointer(e.Path), e) {
			return nil
		}
	}
	if !needed {
		return nil
	}
	return patch
}

// addToMergePatch adds an edit to the part of a strategic merge patch for a map of an object. It reports whether that
// is possible.
func addToMergePatch(patch map[string]any, object any, keys []string, e yamledit.FieldEdit) bool {
	key := keys[0]
	in, _ := object.(map[string]any)
	if len(keys) == 1 {
		if patch[key] = yamledit.Canonical(e.Value); e.Remove { // a copy, to which other edits may add
			patch[key] = nil
		}
		return true
	}
	list, isList := in[key].([]any)
	if !isList {
		if items, isNewList := patch[key].([]any); isNewList && keys[1] == "-" {
			patch[key] = append(items, yamledit.Canonical(e.Value))
			return true
		}
		next, isMap := patch[key].(map[string]any)
		if !isMap {
			next = map[string]any{}
			patch[key] = next
		}
		return addToMergePatch(next, in[key], keys[1:], e)
	}
	index, err := strconv.Atoi(keys[1])
	if err != nil || index < 0 || index >= len(list) || listitem.Key(list) == "" {
		return false
	}
	items, _ := patch[key].([]any)
	i := slices.IndexFunc(items, func(item any) bool { return listitem.Same(item, list[index]) })
	if i < 0 {
		i, items = len(items), append(items, any(listitem.Identity(list[index])))
		patch[key] = items
	}
	item := items[i].(map[string]any) // from Identity
	if len(keys) > 2 {
		return addToMergePatch(item, list[index], keys[2:], e)
	}
	item["$patch"] = "delete"
	return e.Remove
}
