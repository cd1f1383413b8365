package edit

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// source makes the change in the files that the object comes from.
func (a *attempt) source() ([]FileChange, error) {
	if e := a.manifest.Envelope; e != nil && e.Type.IsChart() {
		return nil, fmt.Errorf("%s is rendered from a chart by %s, whose values or templates no edit is derived from; change them, or write an override", a.manifest.Origin, e.ID())
	}
	if a.manifest.Substituted {
		return nil, fmt.Errorf("%s has variables whose values %s sets for each cluster, so that no edit is derived from it; change it or the values, or write an override", a.manifest.Origin, a.manifest.Envelope.ID())
	}
	if a.Deleted {
		return a.remove()
	}
	source := a.editor.before.source(a.manifest)
	if source == nil {
		return nil, errors.New("the commit in force does not have the object")
	}
	edits, err := inEnvelope(source, a.manifest, a.edits)
	if err != nil {
		return nil, err
	}
	return a.inSource(source, edits)
}

// inSource makes edits of an object of the repository.
func (a *attempt) inSource(source *api.Object, edits []yamledit.FieldEdit) ([]FileChange, error) {
	switch o := source.Origin; {
	case o.Kustomization != "":
		return a.editKustomization(source, edits)
	case o.Line == 0:
		return nil, fmt.Errorf("the line of the object in %s is not known", o)
	default:
		return a.inFile(nil, site{o.Path, yamledit.BeginningOn(o.Line), edits})
	}
}

// remove removes an object from the tree that was deleted on all clusters that get it. If a
// kustomization builds it and its manifest cannot be removed, a patch of the kustomization
// deletes it.
func (a *attempt) remove() ([]FileChange, error) {
	source := a.editor.before.source(a.manifest)
	if source == nil {
		return nil, errors.New("the commit in force does not have the object")
	}
	if e := a.manifest.Envelope; e != nil && !e.Type.IsBuilt() {
		at, _, err := envelopeEntry(source, a.ID)
		if err != nil {
			return nil, err
		}
		return a.inSource(source, []yamledit.FieldEdit{{Path: at, Remove: true}})
	}
	files, err := a.removeManifest(source)
	if source.Origin.Kustomization == "" {
		return files, err
	}
	if err == nil && a.verify(files, nil) == nil {
		return files, nil
	}
	text, err := yamledit.Block(map[string]any{
		"$patch": "delete", "apiVersion": source.Content.GetAPIVersion(), "kind": source.ID.Kind,
		"metadata": map[string]any{"name": a.originalName(source)},
	})
	if err != nil {
		return nil, err
	}
	return a.addPatch(nil, source, text)
}

// removeManifest removes the document of an object, or the file if it has no other document,
// with the entries of kustomizations for that file.
func (a *attempt) removeManifest(source *api.Object) ([]FileChange, error) {
	o := source.Origin
	text, err := a.read(nil, o.Path)
	if err != nil {
		return nil, err
	}
	left, err := yamledit.WithoutDocument(text, o.Line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	files := []FileChange{{Path: o.Path, Before: text, After: left}}
	if left != nil {
		return files, nil
	}
	for _, file := range a.editor.Head.Sources[o.Kustomization] {
		if !isKustomization(file) {
			continue
		}
		text, err := a.read(nil, file)
		if err != nil {
			return nil, err
		}
		var k struct {
			Resources []string `yaml:"resources"`
		}
		if yaml.Unmarshal(text, &k) != nil {
			continue
		}
		i := slices.IndexFunc(k.Resources, func(entry string) bool { return path.Join(path.Dir(file), entry) == o.Path })
		if i < 0 {
			continue
		}
		if files, err = a.inFile(files, site{file, yamledit.FirstDocument, []yamledit.FieldEdit{{Path: fmt.Sprintf("/resources/%d", i), Remove: true}}}); err != nil {
			return nil, err
		}
	}
	return files, nil
}
