// Package edit finds the edit of the files in Git that makes a change of an object on some clusters.
//
// An [Editor] looks for it in an override that sets the field already, or in a new one if only some of the clusters that get the
// object have the change; otherwise in the manifest, an envelope or a kustomization, for all clusters. An edit changes no other
// lines, and is verified by loading the edited tree. A [Combination] makes several changes in one tree.
package edit

import (
	"errors"

	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// Edit makes a change. If only some clusters have it, the edit is an override for them. If no
// override can express it, the edit is for all clusters.
func (e *Editor) Edit(t Target) (*Result, error) { return makeEdit(e.attempt(t)) }

// makeEdit implements Edit.
func makeEdit(a *attempt) (*Result, error) {
	if err := a.prepare(); err != nil {
		return nil, err
	}
	t := a.Target
	edit := a.inExistingOverride()
	if edit == nil && len(t.Others) > 0 {
		if edit = inOverlay(a); edit == nil {
			edit = a.newOverride()
		}
	}
	if edit == nil && t.Deleted && len(t.Others) > 0 {
		return nil, errors.New("no override can delete it on these clusters only")
	}
	if edit == nil && a.unreadable != nil {
		return nil, a.unreadable // otherwise the edit would be one for all clusters
	}
	if edit == nil {
		files, err := a.source()
		if err == nil {
			err = a.verify(files, nil)
		}
		if err != nil {
			return nil, err
		}
		edit = &Result{Files: files}
	}
	edit.Origin = replacedLine(edit.Files)
	if edit.Origin.Line == 0 {
		edit.Origin = a.editor.LineOf(a.manifest, a.Drift)
	}
	return edit, nil
}

// inOverlay makes the change in the overlay that builds the object, if it is that of the clusters that have the change and of
// no others. It returns nil if it is not.
func inOverlay(a *attempt) *Result {
	if e := a.manifest.Envelope; e == nil || !e.Type.IsBuilt() {
		return nil
	}
	files, err := a.source()
	if err != nil || a.verify(files, a.Others) != nil {
		return nil
	}
	return &Result{Files: files}
}

// prepare determines the wanted object.
func (a *attempt) prepare() error {
	for i, at := range a.Changed {
		m, err := a.editor.before.object(at, a.ID)
		if err != nil && a.Deleted {
			return ErrInManifest
		}
		if err != nil {
			return err
		}
		if a.manifest == nil {
			a.manifest = m
		}
		if a.Deleted {
			a.want[at] = nil
			continue
		}
		edits, err := fieldEdits(m.Object.Content.Object, a.Drift)
		if err != nil {
			return err
		}
		if a.want[at], err = yamledit.WithEdits(m.Object.Content.Object, edits); err != nil {
			return err
		}
		if i == 0 {
			a.edits = edits
		}
	}
	return nil
}
