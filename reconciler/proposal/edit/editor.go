package edit

import (
	"errors"
	"fmt"
	"io/fs"
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

func (e *Editor) attempt(t Target) *attempt {
	if e.before == nil {
		e.before = render(e.Head)
	}
	return &attempt{editor: e, Target: t, want: map[status.Holder]any{}}
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
	a.unreadable = fmt.Errorf("%w: %w", ErrUnreadable, err)
	return a.unreadable
}

// with returns the changed files, in which a file has a new text.
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

// ErrUnreadable is returned if the file cannot be read at the moment.
var ErrUnreadable = errors.New("the file cannot be read from the commit in force")

// A site is a position in a file where edits may be made.
type site struct {
	file  string
	in    yamledit.Finder
	edits []yamledit.FieldEdit
}

// inFile makes the edits of a site.
func (a *attempt) inFile(files []FileChange, s site) ([]FileChange, error) {
	text, err := a.read(files, s.file)
	if err != nil {
		return nil, err
	}
	if text, err = yamledit.EditAll(text, s.in, s.edits); err != nil {
		return nil, fmt.Errorf("%s: %w", s.file, err)
	}
	return a.with(files, s.file, text)
}
