package proposal

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A combination makes several changes in one tree, one after the other. Each edit is verified in the tree that has those before.
type combination struct {
	// base is the tree of the commit in force, and commit its hash.
	base   fs.FS
	commit string
	load   func(fs.FS) (*hub.Snapshot, error)
	// memos are the changes that were tried, in order.
	memos []string
	// made are those whose edits are in files, and failed those that no edit makes beside the others, by hash.
	made   []*change
	failed map[string]bool
	// files are the changed files, and head is the tree that has them.
	files []FileChange
	head  *hub.Snapshot
	// want is what the clusters shall get of the changed objects.
	want map[api.ID]map[status.Holder]any
}

func newCombination(commit string, base fs.FS, head *hub.Snapshot, load func(fs.FS) (*hub.Snapshot, error)) *combination {
	return &combination{commit: commit, base: base, head: head, load: load, failed: map[string]bool{}, want: map[api.ID]map[status.Holder]any{}}
}

// continues reports whether the combination can be extended to one of some changes at a commit.
func (k *combination) continues(commit string, changes []*change) bool {
	if k.commit != commit || len(k.memos) > len(changes) {
		return false
	}
	for i, memo := range k.memos {
		if memo != changes[i].memo {
			return false
		}
	}
	return true
}

// extend makes one more change. The error is errUnreadable if the files cannot be read at the moment.
func (k *combination) extend(c *change) error {
	e := &Editor{Load: k.load, Files: treeWith(k.base, k.files), Head: k.head}
	a := e.attempt(c.target)
	edit, err := makeEdit(a)
	if err == nil {
		err = k.keepsEarlier(a)
	}
	if errors.Is(err, errUnreadable) {
		return err
	}
	k.memos = append(k.memos, c.memo)
	if err != nil {
		k.failed[c.hash] = true
		return nil
	}
	made := *c // the source stays that in the commit in force
	made.files, made.override, made.others = edit.Files, edit.Override, nil
	if edit.Override == "" {
		for _, h := range c.target.Others {
			made.others = append(made.others, h.Cluster)
		}
	}
	k.made, k.files, k.head = append(k.made, &made), combinedFiles(k.files, edit.Files), a.verified
	if k.want[c.id] == nil {
		k.want[c.id] = map[status.Holder]any{}
	}
	for at, object := range a.want {
		k.want[c.id][at] = object
	}
	return nil
}

// keepsEarlier returns an error if an edit undoes an earlier one. That can only be one of the same object, since the others were
// verified to stay as they are.
func (k *combination) keepsEarlier(a *attempt) error {
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
