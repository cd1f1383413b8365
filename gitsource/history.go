package gitsource

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

func readCommit(st *store, h plumbing.Hash) (*commit, error) {
	raw, err := st.object(plumbing.CommitObject, h, mib)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return parseCommit(h, raw)
}

// A mark says from where a commit was reached.
type mark uint8

const (
	ofOne mark = 1 << iota
	ofOther
	// below is put on what lies under a commit that both have.
	below
	ofBoth = ofOne | ofOther
)

// A walk goes from commits to their parents, newest first. Commit times only
// guide the order: a wrong one makes it go further, or answer more.
type walk struct {
	st      *store
	marks   map[plumbing.Hash]mark
	commits map[plumbing.Hash]*commit
	queue   []*commit
	// stop, if set, says why the walk is to end; nil as long as it is not.
	stop func() error
}

func newWalk(st *store, one, other *commit) *walk {
	w := &walk{st: st, marks: map[plumbing.Hash]mark{}, commits: map[plumbing.Hash]*commit{}}
	w.add(one, ofOne)
	w.add(other, ofOther)
	return w
}

// add queues a commit, again too if it is reached in a new way.
func (w *walk) add(c *commit, m mark) {
	before, seen := w.marks[c.hash]
	if seen && before|m == before {
		return
	}
	w.marks[c.hash] = before | m
	w.commits[c.hash] = c
	w.queue = append(w.queue, c)
}

// run goes on while a commit whose marks open accepts is waiting.
func (w *walk) run(open func(mark) bool) error {
	for {
		newest, waiting := -1, false
		for i, c := range w.queue {
			waiting = waiting || open(w.marks[c.hash])
			if newest < 0 || c.time.After(w.queue[newest].time) {
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
		m := w.marks[c.hash]
		if m&ofBoth == ofBoth {
			m |= below
		}
		for _, p := range c.parents {
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

// between returns the commits that head has and base has not, by hash, and
// whether head descends from base. It may answer too many, never too few. stop, if
// set, says why it is to be given up.
func between(st *store, base plumbing.Hash, head *commit, stop func() error) (fresh []*commit, descends bool, err error) {
	if !st.has(base) {
		return nil, false, nil
	}
	old, err := readCommit(st, base)
	if err != nil {
		return nil, false, err
	}
	w := newWalk(st, head, old)
	w.stop = stop
	if err := w.run(func(m mark) bool { return m == ofOne }); err != nil {
		return nil, false, err
	}
	for _, h := range sortedHashes(w.commits) {
		if w.marks[h] == ofOne {
			fresh = append(fresh, w.commits[h])
		}
	}
	return fresh, w.marks[base]&ofOne != 0, nil
}

// mergeBases returns the newest commits that both have. It may answer too
// many, never too few.
func mergeBases(st *store, one, other *commit) ([]*commit, error) {
	return newWalk(st, one, other).bases()
}

func (w *walk) bases() ([]*commit, error) {
	if err := w.run(func(m mark) bool { return m&below == 0 }); err != nil {
		return nil, err
	}
	var bases []*commit
	for _, h := range sortedHashes(w.commits) {
		if w.marks[h] == ofBoth {
			bases = append(bases, w.commits[h])
		}
	}
	return bases, nil
}

// changes returns what a commit itself changes. Of a merge that is what does
// not simply follow from its two sides: a conflict resolved, a file edited, or
// one side's change dropped.
func (v *verifier) changes(c *commit) ([]Change, error) {
	parents := make([]*commit, len(c.parents))
	for i, p := range c.parents {
		var err error
		if parents[i], err = readCommit(v.st, p); err != nil {
			return nil, err
		}
	}
	switch len(parents) {
	case 0:
		return v.diff(plumbing.ZeroHash, c.tree)
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
		changes, err := v.diff(p.tree, c.tree)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// merged compares a merge with what its sides make of their base.
func (v *verifier) merged(base, one, other, c *commit) ([]Change, error) {
	var diffs [4][]Change
	for i, pair := range [4][2]*commit{{one, c}, {other, c}, {base, one}, {base, other}} {
		var err error
		if diffs[i], err = v.diff(pair[0].tree, pair[1].tree); err != nil {
			return nil, err
		}
	}
	byOne, byOther := paths(diffs[2]), paths(diffs[3])
	notOne, notOther := paths(diffs[0]), paths(diffs[1])
	var all []Change
	for _, d := range diffs[0] { // differs from one side
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

func sortedHashes(commits map[plumbing.Hash]*commit) []plumbing.Hash {
	var out []plumbing.Hash
	for h := range commits {
		out = append(out, h)
	}
	plumbing.HashesSort(out)
	return out
}
