package edit

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// editKustomization makes edits in the files of a kustomization. It prefers entries that already set the
// field, such as a patch or an entry in the list of images; then the manifest, if it is in the
// same directory; and otherwise adds a patch to the kustomization.
func (a *attempt) editKustomization(source *api.Object, edits []yamledit.FieldEdit) (files []FileChange, err error) {
	var rest []yamledit.FieldEdit
	for _, e := range edits {
		if next := a.place(files, source, e, edits); next != nil {
			files = next
		} else {
			rest = append(rest, e)
		}
	}
	if len(rest) > 0 {
		return a.newPatch(files, source, rest)
	}
	return files, nil
}

// place makes one of several edits where the field is set already, or with a new entry in the images or the replicas. It
// returns nil if none of that is possible.
func (a *attempt) place(files []FileChange, source *api.Object, e yamledit.FieldEdit, all []yamledit.FieldEdit) []FileChange {
	if files != nil && a.givesValue(files, source, e) {
		return files // by what another edit has changed, such as the entry of an image that is used twice
	}
	for _, site := range a.sites(files, source, e) {
		if next, err := a.inFile(files, site); err == nil && a.givesValue(next, source, e) {
			return next
		}
	}
	for _, site := range a.newTransformers(files, source, e) {
		if next, err := a.inFile(files, site); err == nil && a.givesValue(next, source, e) && a.givesOnly(next, source, all) {
			return next
		}
	}
	return nil
}

// givesValue reports whether an edited tree gives a field the wanted value, and changes no other
// object.
func (a *attempt) givesValue(files []FileChange, source *api.Object, e yamledit.FieldEdit) bool {
	object := a.built(files, source)
	if object == nil {
		return false
	}
	keys := api.SplitPointer(e.Path)
	if keys[len(keys)-1] == "-" {
		list, _ := yamledit.LookUp(object, keys[:len(keys)-1])
		items, _ := list.([]any)
		return len(items) > 0 && reflect.DeepEqual(items[len(items)-1], yamledit.Canonical(e.Value))
	}
	v, there := yamledit.LookUp(object, keys)
	return there != e.Remove && (e.Remove || reflect.DeepEqual(v, yamledit.Canonical(e.Value)))
}

// built returns an object as an edited tree has it; nil if it has none, or if it has other objects that differ.
func (a *attempt) built(files []FileChange, source *api.Object) any {
	after, err := a.editor.Load(treeWith(a.editor.Files, files))
	if err != nil || checkOthersUnchanged(a.editor.Head, after, affected(a)) != nil {
		return nil
	}
	object := after.Object(source.ID)
	if e := a.manifest.Envelope; e != nil && e.Type.IsBuilt() {
		if object = after.Object(e.ID()); object != nil && object.Overlay != nil {
			object = builtBy(object, position{source.ID, source.Origin.Kustomization})
		}
	}
	if object == nil {
		return nil
	}
	return yamledit.Canonical(object.Content.Object)
}

// givesAll reports whether an edited tree has an object with exactly these edits, in addition to those that an earlier
// one has.
func (a *attempt) givesAll(files, earlier []FileChange, source *api.Object, edits []yamledit.FieldEdit) bool {
	object := source.Content.Object
	if earlier != nil {
		object, _ = a.built(earlier, source).(map[string]any)
	}
	want, err := yamledit.WithEdits(object, edits)
	return err == nil && reflect.DeepEqual(a.built(files, source), want)
}

// givesOnly reports whether an edited tree changes no field of an object but those of the edits. That is not known if
// one of them moves items of a list.
func (a *attempt) givesOnly(files []FileChange, source *api.Object, edits []yamledit.FieldEdit) bool {
	object, isMap := a.built(files, source).(map[string]any)
	if !isMap || slices.ContainsFunc(edits, func(e yamledit.FieldEdit) bool { return e.Remove || strings.HasSuffix(e.Path, "/-") }) {
		return false
	}
	got, errGot := yamledit.WithEdits(object, edits)
	want, err := yamledit.WithEdits(source.Content.Object, edits)
	return errGot == nil && err == nil && reflect.DeepEqual(got, want)
}

// sites returns the positions where a field of a built object may be edited, the best first.
func (a *attempt) sites(files []FileChange, source *api.Object, e yamledit.FieldEdit) []site {
	root := source.Origin.Kustomization
	var out []site
	for _, file := range a.editor.Head.Sources[root] {
		if !isKustomization(file) {
			continue
		}
		text, err := a.read(files, file)
		if err != nil {
			continue
		}
		var k kustomizationText
		if yaml.Unmarshal(text, &k) != nil {
			continue
		}
		found := append(k.transformers(file, source, e), a.patches(files, file, &k, source, e)...)
		if file == root {
			out = append(found, out...)
		} else {
			out = append(out, found...)
		}
	}
	if o := source.Origin; o.Line > 0 && path.Dir(o.Path) == path.Dir(root) && source.Release == "" {
		out = append(out, site{o.Path, yamledit.BeginningOn(o.Line), []yamledit.FieldEdit{e}})
	}
	return out
}

// patches returns the patches of a kustomization that set a field.
func (a *attempt) patches(files []FileChange, file string, k *kustomizationText, source *api.Object, e yamledit.FieldEdit) []site {
	var out []site
	add := func(at, name, inline string) {
		if inline != "" {
			for _, s := range sitesInPatch("", []byte(inline), source, e) {
				if text, err := yamledit.EditAll([]byte(inline), s.in, s.edits); err == nil {
					out = append(out, site{file, yamledit.FirstDocument, []yamledit.FieldEdit{{Path: at, Value: string(text)}}})
				}
			}
			return
		}
		name = path.Join(path.Dir(file), name)
		if text, err := a.read(files, name); err == nil {
			out = append(out, sitesInPatch(name, text, source, e)...)
		}
	}
	for i, p := range k.Patches {
		add(fmt.Sprintf("/patches/%d/patch", i), p.Path, p.Patch)
	}
	for i, p := range k.PatchesJSON6902 {
		add(fmt.Sprintf("/patchesJson6902/%d/patch", i), p.Path, p.Patch)
	}
	for i, p := range k.PatchesStrategicMerge {
		if strings.Contains(p, "\n") {
			add(fmt.Sprintf("/patchesStrategicMerge/%d", i), "", p)
		} else {
			add("", p, "")
		}
	}
	return out
}

// sitesInPatch returns the positions in a patch that set a field: operations of a JSON patch,
// or fields of a strategic merge patch.
func sitesInPatch(file string, text []byte, source *api.Object, e yamledit.FieldEdit) []site {
	var out []site
	n := -1
	err := yamledit.EachDocument(text, func(doc *yaml.Node) {
		n++
		var v any
		if doc.Decode(&v) != nil {
			return
		}
		if operations, isJSONPatch := v.([]any); isJSONPatch {
			for i, item := range operations {
				if o, ok := item.(map[string]any); ok && o["path"] == e.Path && (o["op"] == "add" || o["op"] == "replace") && !e.Remove {
					out = append(out, site{file, yamledit.NthDocument(n), []yamledit.FieldEdit{{Path: fmt.Sprintf("/%d/value", i), Value: e.Value}}})
				}
			}
			return
		}
		if fields, ok := v.(map[string]any); ok && (fields["kind"] == nil || fields["kind"] == source.ID.Kind) {
			if at, there := findInMergePatch(source.Content.Object, fields, api.SplitPointer(e.Path)); there {
				out = append(out, site{file, yamledit.NthDocument(n), []yamledit.FieldEdit{{Path: yamledit.Pointer(at), Value: e.Value, Remove: e.Remove}}})
			}
		}
	})
	if err != nil {
		return nil
	}
	return out
}

// findInMergePatch finds the field of a strategic merge patch that sets a field of an object.
func findInMergePatch(object, patch any, keys []string) (at []string, there bool) {
	for _, key := range keys {
		switch in := patch.(type) {
		case map[string]any:
			if patch, there = in[key]; !there {
				return nil, false
			}
			object, _ = yamledit.LookUp(object, []string{key})
		case []any:
			item, _ := yamledit.LookUp(object, []string{key})
			i := slices.IndexFunc(in, func(other any) bool { return listitem.Same(item, other) })
			if i < 0 {
				return nil, false
			}
			object, patch, key = item, in[i], fmt.Sprint(i)
		default:
			return nil, false
		}
		at = append(at, key)
	}
	return at, there
}

// newPatch adds some edits to the patch of the object that the kustomization has, or else new patches. An item of a list is
// addressed by its name, and a map or a list is added, in a strategic merge patch; in a JSON patch, which addresses an
// item by its index, the operation comes after a test of the item.
func (a *attempt) newPatch(files []FileChange, source *api.Object, edits []yamledit.FieldEdit) ([]FileChange, error) {
	if next := a.extendPatch(files, source, edits); next != nil {
		return next, nil
	}
	if next := a.newMergePatch(files, source, edits); next != nil {
		return next, nil
	}
	object := source.Content.Object
	var added, others []yamledit.FieldEdit
	for _, e := range edits {
		if isNew(object, e) && len(listitem.Steps(object, e.Path)) == 0 {
			added = append(added, e)
		} else {
			others = append(others, e)
		}
	}
	if len(added) > 0 && len(others) > 0 {
		if next := a.newMergePatch(files, source, added); next != nil {
			return a.newPatch(next, source, others)
		}
	}
	operations, err := operationsOf(object, edits)
	if err != nil {
		return nil, err
	}
	text, err := yamledit.Block(slices.Concat(guarded(object, edits, operations)...))
	if err != nil {
		return nil, err
	}
	return a.addPatch(files, source, text)
}

// newMergePatch adds a strategic merge patch with some edits to the kustomization; it returns nil if there is none that
// makes them, and nothing else.
func (a *attempt) newMergePatch(files []FileChange, source *api.Object, edits []yamledit.FieldEdit) []FileChange {
	patch := mergePatch(source, a.originalName(source), edits)
	if patch == nil {
		return nil
	}
	text, err := yamledit.Block(patch)
	if err != nil {
		return nil
	}
	next, err := a.addPatch(files, source, text)
	if err != nil || !a.givesAll(next, files, source, edits) {
		return nil
	}
	return next
}

// addPatch adds a patch of an object to the kustomization.
func (a *attempt) addPatch(files []FileChange, source *api.Object, text string) ([]FileChange, error) {
	added := map[string]any{"target": a.patchTarget(source), "patch": text}
	root := source.Origin.Kustomization
	before, err := a.read(files, root)
	if err != nil {
		return nil, err
	}
	return a.inFile(files, site{root, yamledit.FirstDocument, []yamledit.FieldEdit{appendTo(before, "patches", added)}})
}

// patchTarget returns the target of patches of an object.
func (a *attempt) patchTarget(source *api.Object) map[string]any {
	target := map[string]any{"kind": source.ID.Kind, "name": a.originalName(source)}
	if source.ID.Group != "" {
		target["group"] = source.ID.Group
	}
	return target
}

// originalName returns the name of an object before the kustomization changed it.
func (a *attempt) originalName(source *api.Object) string {
	if source.Origin.Line == 0 {
		return source.ID.Name
	}
	if text, err := a.read(nil, source.Origin.Path); err == nil {
		var manifest struct{ Metadata struct{ Name string } }
		if n, err := yamledit.ManifestAt(text, source.Origin.Line); err == nil && n.Decode(&manifest) == nil {
			return cmp.Or(manifest.Metadata.Name, source.ID.Name)
		}
	}
	return source.ID.Name
}

// extendPatch adds edits to an inline patch that the kustomization has with the same target, so that the object gets no
// second one. It returns nil if there is none that can have them.
func (a *attempt) extendPatch(files []FileChange, source *api.Object, edits []yamledit.FieldEdit) []FileChange {
	root := source.Origin.Kustomization
	text, err := a.read(files, root)
	var k kustomizationText
	if err != nil || yaml.Unmarshal(text, &k) != nil {
		return nil
	}
	for i, p := range k.Patches {
		if p.Patch == "" || !reflect.DeepEqual(p.Target, a.patchTarget(source)) {
			continue
		}
		extended, err := extended(p.Patch, source, edits)
		if err != nil {
			continue
		}
		next, err := a.inFile(files, site{root, yamledit.FirstDocument, []yamledit.FieldEdit{{Path: fmt.Sprintf("/patches/%d/patch", i), Value: extended}}})
		if err == nil && a.givesAll(next, files, source, edits) {
			return next
		}
	}
	return nil
}

// newTransformers returns new entries in the images and the replicas of a kustomization that may set a field.
func (a *attempt) newTransformers(files []FileChange, source *api.Object, e yamledit.FieldEdit) []site {
	root := source.Origin.Kustomization
	text, err := a.read(files, root)
	if err != nil || e.Remove {
		return nil
	}
	add := func(list string, item any) []site {
		return []site{{root, yamledit.FirstDocument, []yamledit.FieldEdit{appendTo(text, list, item)}}}
	}
	if e.Path == "/spec/replicas" {
		return add("replicas", map[string]any{"name": a.originalName(source), "count": e.Value})
	}
	now, _ := yamledit.LookUp(source.Content.Object, api.SplitPointer(e.Path))
	before, wasText := now.(string)
	after, isText := e.Value.(string)
	if !wasText || !isText || !strings.HasSuffix(e.Path, "/image") {
		return nil
	}
	name := imageOf(before).name
	entry := map[string]any{"name": name}
	for _, field := range (imageEntry{Name: name}).edits("", imageOf(before), imageOf(after)) {
		entry[field.Path] = fmt.Sprint(field.Value)
	}
	if len(entry) == 1 {
		return nil
	}
	return add("images", entry)
}

// extended returns a patch of an object with more edits: as operations of a JSON patch, or in a strategic merge patch
// that is written as gitfleet does it. Another one may have comments, which would be lost.
func extended(patch string, source *api.Object, edits []yamledit.FieldEdit) (string, error) {
	var now any
	if err := yaml.Unmarshal([]byte(patch), &now); err != nil {
		return "", err
	}
	object := source.Content.Object
	switch now := yamledit.Canonical(now).(type) {
	case []any:
		if slices.ContainsFunc(edits, func(e yamledit.FieldEdit) bool { return isNew(object, e) }) {
			return "", errors.New("a strategic merge patch keeps what Git sets later")
		}
		operations, err := operationsOf(object, edits)
		if err != nil {
			return "", err
		}
		var appended []yamledit.FieldEdit
		for _, operation := range slices.Concat(operations...) {
			appended = append(appended, yamledit.FieldEdit{Path: "/-", Value: operation})
		}
		text, err := yamledit.EditAll([]byte(patch), yamledit.FirstDocument, appended)
		return string(text), err
	case map[string]any:
		if text, err := yamledit.Block(now); err != nil || text != patch {
			return "", errors.New("it is not in the form in which gitfleet writes it")
		}
		for _, e := range edits {
			if !addToMergePatch(now, yamledit.Canonical(object), api.SplitPointer(e.Path), e) {
				return "", &yamledit.FieldError{Path: e.Path, Reason: "a strategic merge patch cannot have it"}
			}
		}
		return yamledit.Block(now)
	}
	return "", errors.New("it is no patch")
}
