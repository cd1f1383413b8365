package gitsource

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// An Undone is what undoing the changes between two commits does to the files of a later one.
type Undone struct {
	// Files are the new contents of the files that change, by path; nil for one that is removed.
	Files map[string][]byte
	// Conflicts are the paths whose changes cannot be undone, sorted: later commits have changed the same lines, or they are
	// not ordinary files.
	Conflicts []string
}

// Undo returns what undoing all changes between two commits, an earlier and a later one, does to the files of a head. All three
// must be in the tracked history, each in that of the next; otherwise the error is [ErrNotInHistory]. Nothing is written.
func Undo(ctx context.Context, r *Repo, head, later, earlier string) (*Undone, error) {
	var commits [3]*objects.Commit // the one to undo, the head, and the one to go back to
	for i, hash := range []string{later, head, earlier} {
		h, err := objects.ParseHash(hash)
		if err != nil {
			return nil, err
		}
		if commits[i], err = r.commit(h); err != nil {
			return nil, err
		}
	}
	for _, pair := range [][2]string{{head, later}, {later, earlier}} {
		switch contains, err := r.Contains(ctx, pair[0], pair[1]); {
		case err != nil:
			return nil, err
		case !contains:
			return nil, fmt.Errorf("%w: commit %s is not in that of %s", ErrNotInHistory, pair[1], pair[0])
		}
	}
	m := newMerger(reader{repo: r}, time.Now().Add(mergeTime))
	m.done = ctx.Err
	root, err := m.dirs("", commits[0].Tree, commits[1].Tree, commits[2].Tree, 0)
	if err != nil {
		return nil, fmt.Errorf("undo commits %s..%s in %s: %w", earlier, later, head, err)
	}
	changes, err := diffTrees(m.merged.tree, commits[1].Tree, root)
	if err != nil {
		return nil, fmt.Errorf("undo commits %s..%s in %s: %w", earlier, later, head, err)
	}
	out := &Undone{Files: map[string][]byte{}, Conflicts: m.conflicts}
	after := &files{ctx: ctx, objects: m.merged, root: root, time: commits[1].Time, commit: head}
	for _, c := range changes {
		switch {
		case !isOrdinary(c.from) || !isOrdinary(c.to):
			out.Conflicts = append(out.Conflicts, c.path)
			continue
		case c.to == "":
			out.Files[c.path] = nil
			continue
		}
		content, err := fs.ReadFile(after, c.path)
		if err != nil {
			return nil, fmt.Errorf("undo commits %s..%s in %s: %w", earlier, later, head, err)
		}
		out.Files[c.path] = slices.Concat([]byte{}, content) // not nil if it is empty
	}
	slices.Sort(out.Conflicts)
	return out, nil
}

// isOrdinary reports whether what [describe] returns is that of an ordinary file or of an absent one.
func isOrdinary(described string) bool { return !strings.Contains(described, " ") }
