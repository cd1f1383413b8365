package gitsource

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

func readCommit(st *objects.Store, h plumbing.Hash) (*objects.Commit, error) {
	raw, err := st.Object(plumbing.CommitObject, h, mib)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return objects.ParseCommit(h, raw)
}

// A mark records from which of the two starting commits a commit was reached.
type mark uint8

const (
	fromOne mark = 1 << iota
	fromOther
	// belowCommon marks the ancestors of commits that were reached from both.
	belowCommon
	fromBoth = fromOne | fromOther
)

// A walk visits two commits and their ancestors, newest first. The commit times only decide the
// order: a wrong time can make the walk longer or the result larger.
type walk struct {
	st      *objects.Store
	marks   map[plumbing.Hash]mark
	commits map[plumbing.Hash]*objects.Commit
	queue   []*objects.Commit
	// stop, if set, returns an error once the walk has to end.
	stop func() error
}

func newWalk(st *objects.Store, one, other *objects.Commit, stop func() error) *walk {
	w := &walk{st: st, marks: map[plumbing.Hash]mark{}, commits: map[plumbing.Hash]*objects.Commit{}, stop: stop}
	w.add(one, fromOne)
	w.add(other, fromOther)
	return w
}

// add queues a commit unless it was already reached with these marks.
func (w *walk) add(c *objects.Commit, m mark) {
	before, seen := w.marks[c.Hash]
	if seen && before|m == before {
		return
	}
	w.marks[c.Hash] = before | m
	w.commits[c.Hash] = c
	w.queue = append(w.queue, c)
}

// run visits commits until needed is false for the marks of every queued commit.
func (w *walk) run(needed func(mark) bool) error {
	for {
		newest, waiting := -1, false
		for i, c := range w.queue {
			waiting = waiting || needed(w.marks[c.Hash])
			if newest < 0 || c.Time.After(w.queue[newest].Time) {
				newest = i
			}
		}
		if !waiting {
			return nil
		}
		if w.stop != nil {
			if err := w.stop(); err != nil {
				return err
			}
		}
		c := w.queue[newest]
		w.queue[newest] = w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		m := w.marks[c.Hash]
		if m&fromBoth == fromBoth {
			m |= belowCommon
		}
		for _, p := range c.Parents {
			parent := w.commits[p]
			if parent == nil {
				var err error
				if parent, err = readCommit(w.st, p); err != nil {
					return err
				}
			}
			w.add(parent, m)
		}
	}
}

// marked returns the visited commits that have exactly these marks, sorted by hash.
func (w *walk) marked(m mark) []*objects.Commit {
	var found []*objects.Commit
	for h, c := range w.commits {
		if w.marks[h] == m {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *objects.Commit) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return found
}

// between returns the commits in the history of head but not of base, sorted by hash, and
// whether head descends from base. With wrong commit times it may return too many, but never
// too few. stop is that of a walk.
func between(st *objects.Store, base plumbing.Hash, head *objects.Commit, stop func() error) (added []*objects.Commit, descends bool, err error) {
	if !st.Has(base) {
		return nil, false, nil
	}
	old, err := readCommit(st, base)
	if err != nil {
		return nil, false, err
	}
	w := newWalk(st, head, old, stop)
	err = w.run(func(m mark) bool { return m == fromOne })
	return w.marked(fromOne), w.marks[base]&fromOne != 0, err
}

// mergeBases returns the newest common ancestors of two commits, sorted by hash. With wrong
// commit times it may return too many, but never too few. stop is that of a walk.
func mergeBases(st *objects.Store, one, other *objects.Commit, stop func() error) ([]*objects.Commit, error) {
	w := newWalk(st, one, other, stop)
	err := w.run(func(m mark) bool { return m&belowCommon == 0 })
	return w.marked(fromBoth), err
}
