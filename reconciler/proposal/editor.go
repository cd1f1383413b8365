package proposal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edited"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An Editor makes changes of objects in a tree, and verifies each result: the edited tree loads
// without new problems, gives the clusters the wanted object, and changes no other object.
type Editor struct {
	// Load loads a tree.
	Load func(fs.FS) (*hub.Snapshot, error)
	// Files is the tree, and Head the result of Load for it.
	Files fs.FS
	Head  *hub.Snapshot

	before *rendering
}

// A Target is a change of one object on some clusters.
type Target struct {
	ID    api.ID
	Drift []api.Difference
	// Deleted says that the object was deleted on the clusters.
	Deleted bool
	// Changed are the clusters that have the change, and Others those that have the object
	// without it.
	Changed, Others []status.Holder
}

// A FileChange is the change of one file of a tree.
type FileChange struct {
	// Path is slash-separated and relative to the top of the repository.
	Path string
	// Before is the content before the change; nil for a new file.
	Before []byte
	// After is the new content; nil for a file that is removed.
	After []byte
}

// treeWith returns a tree with some changes.
func treeWith(base fs.FS, changes []FileChange) fs.FS {
	files := map[string][]byte{}
	for _, c := range changes {
		files[c.Path] = c.After
	}
	return edited.Tree(base, files)
}

// A Result is an edit that makes a change in a tree.
type Result struct {
	Files []FileChange
	// Origin is the line that has the value in Git: the first that the edit replaces, or else that of the field or
	// of the object.
	Origin api.Origin
	// Override names the override that the edit changes, so that it affects only the clusters
	// that have the change. It is empty if the edit affects all clusters.
	Override string
}

// Edit makes a change. If only some clusters have it, the edit is an override for them. If no
// override can express it, the edit is for all clusters.
func (e *Editor) Edit(t Target) (*Result, error) { return makeEdit(e.attempt(t)) }

func (e *Editor) attempt(t Target) *attempt {
	if e.before == nil {
		e.before = render(e.Head)
	}
	return &attempt{editor: e, Target: t, want: map[status.Holder]any{}}
}

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
		edit.Origin = a.editor.lineOf(a.manifest, a.Drift)
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

// An attempt is an edit that is being made.
type attempt struct {
	editor *Editor
	Target
	// manifest is the object as the first of the clusters gets it, and edits are the edits
	// to make.
	manifest *work.Manifest
	edits    []yamledit.FieldEdit
	// want is the object that each cluster shall get; nil if it shall not get it.
	want map[status.Holder]any
	// unreadable is the error if a file could not be read; nil if all could.
	unreadable error
	// verified is the edited tree as it was loaded when it was last found to be right.
	verified *hub.Snapshot
}

// prepare determines the wanted object.
func (a *attempt) prepare() error {
	for i, at := range a.Changed {
		m, err := a.editor.before.object(at, a.ID)
		if err != nil && a.Deleted {
			return errInManifest
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

// read returns a file of the tree with the changes of files so far.
func (a *attempt) read(files []FileChange, path string) ([]byte, error) {
	text, err := fs.ReadFile(treeWith(a.editor.Files, files), path)
	if err != nil {
		return nil, a.notRead(err)
	}
	return text, nil
}

// notRead records that a file could not be read.
func (a *attempt) notRead(err error) error {
	a.unreadable = fmt.Errorf("%w: %w", errUnreadable, err)
	return a.unreadable
}

// with adds the new text of a file to the changes of files so far.
func (a *attempt) with(files []FileChange, path string, text []byte) ([]FileChange, error) {
	files = slices.Clone(files)
	if i := slices.IndexFunc(files, func(c FileChange) bool { return c.Path == path }); i >= 0 {
		files[i].After = text
		return files, nil
	}
	before, err := fs.ReadFile(a.editor.Files, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, a.notRead(err)
	}
	return append(files, FileChange{Path: path, Before: before, After: text}), nil
}

// verify loads the edited tree. The clusters that have the change must get the wanted object, and
// those that are untouched what they have.
func (a *attempt) verify(files []FileChange, untouched []status.Holder) error {
	after, err := a.editor.Load(treeWith(a.editor.Files, files))
	if broken, ok := errors.AsType[*hub.LoadError](err); ok {
		return fmt.Errorf("the edited files would not load: %s", broken.Problems.Summary())
	}
	if err != nil {
		return a.notRead(err)
	}
	if p := newProblem(a.editor.Head, after); p != nil {
		return fmt.Errorf("the edited files would have a new problem: %w", p)
	}
	if err := checkOthersUnchanged(a.editor.Head, after, affected(a)); err != nil {
		return err
	}
	now := render(after)
	for at, object := range a.want {
		if err := now.gives(at, a.ID, object); err != nil {
			return err
		}
		if err := a.keepsOthers(now, at, a.ID); err != nil {
			return err
		}
	}
	for _, at := range untouched {
		if err := a.keepsOthers(now, at, api.ID{}); err != nil {
			return err
		}
	}
	a.verified = after
	return nil
}

// gives returns an error unless a cluster gets an object of a placement as it is wanted; nil if it shall not get it.
func (r *rendering) gives(at status.Holder, id api.ID, want any) error {
	m, err := r.object(at, id)
	switch {
	case want == nil && err == nil:
		return errors.New("the edited files would still have the object")
	case want != nil && err != nil:
		return err
	case want != nil && !reflect.DeepEqual(yamledit.Canonical(m.Object.Content.Object), want):
		return errors.New("the edited files do not give the object the values that it has on the clusters")
	}
	return nil
}

// affected are the objects that the edit may change: the object or its envelope, or what overlays build for the clusters
// that have the change.
func affected(a *attempt) map[position]bool {
	out := map[position]bool{{id: a.ID}: true}
	if holder := a.editor.before.holder(a.manifest); holder != nil && holder.Overlay == nil {
		out[position{id: holder.ID}] = true
	}
	for _, at := range a.Changed {
		if m, err := a.editor.before.object(at, a.ID); err == nil {
			out[position{a.ID, m.Origin.Kustomization}] = true
		}
	}
	return out
}

// keepsOthers returns an error if a cluster gets other objects than before, except for one.
func (a *attempt) keepsOthers(now *rendering, at status.Holder, but api.ID) error {
	was, err := a.editor.before.objects(at)
	if err != nil {
		return err
	}
	is, err := now.objects(at)
	if err != nil {
		return err
	}
	if !maps.Equal(hashes(was, but), hashes(is, but)) {
		return fmt.Errorf("the edit would change other objects on %s as well", at.Cluster)
	}
	return nil
}

// newProblem returns a problem that the snapshot after has and before does not have.
func newProblem(before, after *hub.Snapshot) error {
	type problem struct{ path, field, message string }
	known := map[problem]int{}
	for _, p := range before.Warnings {
		known[problem{p.Path, p.Field, p.Message}]++
	}
	for _, p := range after.Warnings {
		key := problem{p.Path, p.Field, p.Message}
		if known[key]--; known[key] < 0 {
			return p
		}
	}
	return nil
}

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

// errUnreadable is returned if the file cannot be read at the moment.
var errUnreadable = errors.New("the file cannot be read from the commit in force")
