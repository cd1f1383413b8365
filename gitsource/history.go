package gitsource

import (
	"fmt"

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

func newWalk(st *objects.Store, one, other *objects.Commit) *walk {
	w := &walk{st: st, marks: map[plumbing.Hash]mark{}, commits: map[plumbing.Hash]*objects.Commit{}}
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
	w := newWalk(st, head, old)
	w.stop = stop
	if err := w.run(func(m mark) bool { return m == fromOne }); err != nil {
		return nil, false, err
	}
	for _, h := range sortedHashes(w.commits) {
		if w.marks[h] == fromOne {
			added = append(added, w.commits[h])
		}
	}
	return added, w.marks[base]&fromOne != 0, nil
}

// mergeBases returns the newest common ancestors of two commits. With wrong commit times it may
// return too many, but never too few.
func mergeBases(st *objects.Store, one, other *objects.Commit) ([]*objects.Commit, error) {
	return newWalk(st, one, other).bases()
}

func (w *walk) bases() ([]*objects.Commit, error) {
	if err := w.run(func(m mark) bool { return m&belowCommon == 0 }); err != nil {
		return nil, err
	}
	var bases []*objects.Commit
	for _, h := range sortedHashes(w.commits) {
		if w.marks[h] == fromBoth {
			bases = append(bases, w.commits[h])
		}
	}
	return bases, nil
}

// changes returns the changes that a commit itself makes. For a merge commit these are its
// differences from an automatic merge: resolved conflicts, edited files and dropped changes.
func (v *verifier) changes(c *objects.Commit) ([]Change, error) {
	parents := make([]*objects.Commit, len(c.Parents))
	for i, p := range c.Parents {
		var err error
		if parents[i], err = readCommit(v.st, p); err != nil {
			return nil, err
		}
	}
	switch len(parents) {
	case 0:
		return v.diff(plumbing.ZeroHash, c.Tree)
	case 2:
		bases, err := mergeBases(v.st, parents[0], parents[1])
		if err != nil {
			return nil, err
		}
		if len(bases) == 1 {
			return v.merged(bases[0], parents[0], parents[1], c)
		}
	}
	var all []Change
	for _, p := range parents {
		changes, err := v.diff(p.Tree, c.Tree)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// merged returns where a merge commit differs from an automatic merge of its parents.
func (v *verifier) merged(base, one, other, c *objects.Commit) ([]Change, error) {
	var diffs [4][]Change
	for i, pair := range [4][2]*objects.Commit{{one, c}, {other, c}, {base, one}, {base, other}} {
		var err error
		if diffs[i], err = v.diff(pair[0].Tree, pair[1].Tree); err != nil {
			return nil, err
		}
	}
	byOne, byOther := paths(diffs[2]), paths(diffs[3])
	notOne, notOther := paths(diffs[0]), paths(diffs[1])
	var all []Change
	for _, d := range diffs[0] { // differs from the first parent
		if notOther[d.Path] || byOne[d.Path] {
			all = append(all, d)
		}
	}
	for _, d := range diffs[1] {
		if !notOne[d.Path] && byOther[d.Path] {
			all = append(all, d)
		}
	}
	return all, nil
}

func paths(changes []Change) map[string]bool {
	out := make(map[string]bool, len(changes))
	for _, c := range changes {
		out[c.Path] = true
	}
	return out
}

func sortedHashes(commits map[plumbing.Hash]*objects.Commit) []plumbing.Hash {
	var out []plumbing.Hash
	for h := range commits {
		out = append(out, h)
	}
	plumbing.HashesSort(out)
	return out
}
