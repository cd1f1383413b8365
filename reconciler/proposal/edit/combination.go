package edit

import (
	"bytes"
	"io/fs"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A Combination makes several changes in one tree, one after the other. Each edit is verified in the tree that has those before.
type Combination struct {
	base fs.FS
	load func(fs.FS) (*hub.Snapshot, error)
	// files are the changed files, and head is the tree that has them.
	files []FileChange
	head  *hub.Snapshot
	// want is what the clusters shall get of the changed objects.
	want map[api.ID]map[status.Holder]any
}

// NewCombination returns a combination without changes. Head is the result of load for the tree.
func NewCombination(base fs.FS, head *hub.Snapshot, load func(fs.FS) (*hub.Snapshot, error)) *Combination {
	return &Combination{base: base, head: head, load: load, want: map[api.ID]map[status.Holder]any{}}
}

// Files returns the changed files.
func (k *Combination) Files() []FileChange { return k.files }

// Add makes one more change, and returns its edit. After an error the combination is as before; the error is ErrUnreadable if the
// files cannot be read at the moment.
func (k *Combination) Add(t Target) (*Result, error) {
	e := &Editor{Load: k.load, Files: treeWith(k.base, k.files), Head: k.head}
	a := e.attempt(t)
	edit, err := makeEdit(a)
	if err != nil {
		return nil, err
	}
	if err := k.keepsEarlier(a); err != nil {
		return nil, err
	}
	k.files, k.head = combinedFiles(k.files, edit.Files), a.verified
	if k.want[t.ID] == nil {
		k.want[t.ID] = map[status.Holder]any{}
	}
	for at, object := range a.want {
		k.want[t.ID][at] = object
	}
	return edit, nil
}

// keepsEarlier returns an error if an edit undoes an earlier one. That can only be one of the same object, since the others were
// verified to stay as they are.
func (k *Combination) keepsEarlier(a *attempt) error {
	now := render(a.verified)
	for at, object := range k.want[a.ID] {
		if _, again := a.want[at]; again {
			continue
		}
		if err := now.gives(at, a.ID, object); err != nil {
			return err
		}
	}
	return nil
}

// combinedFiles returns the changes of files with those of a later edit.
func combinedFiles(files, later []FileChange) []FileChange {
	out := slices.Clone(files)
	for _, f := range later {
		i := slices.IndexFunc(out, func(have FileChange) bool { return have.Path == f.Path })
		if i < 0 {
			out = append(out, f)
			continue
		}
		out[i].After = f.After
	}
	return slices.DeleteFunc(out, func(f FileChange) bool {
		return (f.Before == nil) == (f.After == nil) && bytes.Equal(f.Before, f.After)
	})
}
