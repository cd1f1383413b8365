package gitsource

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the hash of Git's objects
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// FetchRef fetches a commit that the remote has under the full name of a reference, such as
// refs/pull/17/head, so that it can be read. Objects that the tracked history does not have go
// to a store of their own, of at most 32 MiB, which lasts until FetchRef or Close is called.
// The tracked reference and its store do not change. The error is [ErrRefNotFound] if the
// reference does not exist or has moved, and [ErrTooLarge] if the objects exceed the limit.
// Only one goroutine may use it.
func (r *Repo) FetchRef(ctx context.Context, ref, commit string) error {
	h, err := parseHash(commit)
	if err != nil {
		return err
	}
	if err := r.dropBranch(); err != nil {
		return err
	}
	st := r.stored.Load()
	layer := st
	if !st.has(h) {
		if layer, err = r.fetchRef(ctx, ref, h); err != nil {
			return fmt.Errorf("fetch %s: %w", ref, err)
		}
		r.branchMu.Lock()
		r.branch = layer
		r.branchMu.Unlock()
	}
	c, err := readCommit(layer, h)
	if err == nil {
		accepted, _ := st.acceptedRef(r.key())
		err = complete(layer, c.tree, r.directoriesOf(accepted))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("commit %s is incomplete: %w", h, err), r.dropBranch())
	}
	return nil
}

func (r *Repo) fetchRef(ctx context.Context, ref string, h plumbing.Hash) (*store, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limits.FetchTime)
	defer cancel()
	defer r.branches.close()
	s, err := r.branches.session(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // nothing is written to it
	refs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	if refs.References[ref] != h {
		return nil, fmt.Errorf("%w at commit %s", ErrRefNotFound, h)
	}
	return r.fetchLayer(ctx, s, r.branchDir(), h)
}

// A ConflictError says that two commits cannot be merged automatically.
type ConflictError struct {
	// Paths are the paths that both have changed, sorted.
	Paths []string
}

// Error names the first few paths.
func (e *ConflictError) Error() string {
	const few = 3
	text := strings.Join(e.Paths[:min(few, len(e.Paths))], ", ")
	if more := len(e.Paths) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "both sides have changed " + text
}

// Merge returns the files of a merge of two commits, without writing anything. A path that
// only one side has changed is taken from that side; if both have changed it differently, the
// error is a [*ConflictError]. The base must be in the tracked history; the head is there too,
// or is the commit of FetchRef.
func (r *Repo) Merge(ctx context.Context, base, head string) (fs.FS, error) {
	h, err := parseHash(head)
	if err != nil {
		return nil, err
	}
	objects := r.reader(h)
	var sides [2]*commit
	for i, s := range []string{base, head} {
		h, err := parseHash(s)
		if err == nil {
			sides[i], err = objects.commit(h)
		}
		if err != nil {
			return nil, err
		}
	}
	var ancestor *commit
	err = objects.withStore(func(st *store) (err error) {
		ancestor, err = mergeBase(ctx, st, sides[0], sides[1])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("merge %s into %s: %w", head, base, err)
	}
	m := merger{tree: objects.tree, made: map[plumbing.Hash][]entry{}}
	root, err := m.dirs("", ancestor.tree, sides[0].tree, sides[1].tree, 0)
	if err != nil {
		return nil, err
	}
	if len(m.conflicts) > 0 {
		slices.Sort(m.conflicts)
		return nil, &ConflictError{m.conflicts}
	}
	return &files{objects: objects, root: root, time: sides[1].time, commit: head, made: m.made}, nil
}

var errNoBase = errors.New("their histories have no commit in common")

// mergeBase returns the newest commit that both descend from. If there are several, their trees
// must be equal.
func mergeBase(ctx context.Context, st *store, one, other *commit) (*commit, error) {
	w := newWalk(st, one, other)
	w.stop = ctx.Err
	bases, err := w.bases()
	switch {
	case err != nil:
		return nil, err
	case len(bases) == 0:
		return nil, errNoBase
	}
	for _, b := range bases[1:] {
		if b.tree != bases[0].tree {
			return nil, errors.New("their histories cross: merge the base into the branch")
		}
	}
	return bases[0], nil
}

// A merger merges trees by their entries.
type merger struct {
	tree func(plumbing.Hash) ([]entry, error)
	// made are the merged directories that neither side has, by their hash in Git.
	made      map[plumbing.Hash][]entry
	conflicts []string
}

// dirs merges one directory. The zero hash stands for an empty one.
func (m *merger) dirs(path string, base, one, other plumbing.Hash, depth int) (plumbing.Hash, error) {
	switch {
	case one == other || other == base:
		return one, nil
	case one == base:
		return other, nil
	case depth > maxDepth:
		return plumbing.ZeroHash, fmt.Errorf("%s: directories nest more than %d deep", path, maxDepth)
	}
	var lists [3][]entry
	var names []string
	for i, h := range []plumbing.Hash{base, one, other} {
		var err error
		if lists[i], err = (differ{tree: m.tree}).read(path, h); err != nil {
			return plumbing.ZeroHash, err
		}
		for _, e := range lists[i] {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	var merged []entry
	for _, name := range slices.Compact(names) {
		var sides [3]entry
		for i := range lists {
			sides[i], _ = lookup(lists[i], name)
		}
		e, err := m.entry(join(path, name), sides[0], sides[1], sides[2], depth)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if e.name != "" {
			merged = append(merged, e)
		}
	}
	if len(merged) == 0 && path != "" {
		return plumbing.ZeroHash, nil
	}
	h := hashTree(merged)
	m.made[h] = merged
	return h, nil
}

// entry merges the entries of one name; an absent entry is zero.
func (m *merger) entry(path string, base, one, other entry, depth int) (entry, error) {
	switch {
	case one == other || other == base:
		return one, nil
	case one == base:
		return other, nil
	case !one.mode.IsDir() || !other.mode.IsDir():
		m.conflicts = append(m.conflicts, path)
		return one, nil
	}
	var before plumbing.Hash
	if base.mode.IsDir() {
		before = base.hash
	}
	h, err := m.dirs(path, before, one.hash, other.hash, depth+1)
	if err != nil || h.IsZero() {
		return entry{}, err
	}
	one.hash = h
	return one, nil
}

// hashTree returns the hash that Git gives to a directory. Git sorts the entries as if names
// of directories ended with a slash.
func hashTree(entries []entry) plumbing.Hash {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(treeName(a), treeName(b)) })
	var content bytes.Buffer
	for _, e := range sorted {
		fmt.Fprintf(&content, "%s %s\x00%s", treeMode(e.mode), e.name, e.hash[:])
	}
	sum := sha1.New() //nolint:gosec // see the import
	fmt.Fprintf(sum, "tree %d\x00", content.Len())
	sum.Write(content.Bytes())
	return plumbing.Hash(sum.Sum(nil))
}

func treeName(e entry) string {
	if e.mode.IsDir() {
		return e.name + "/"
	}
	return e.name
}

func treeMode(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "40000"
	case mode&fs.ModeSymlink != 0:
		return "120000"
	case mode&fs.ModeIrregular != 0:
		return "160000"
	case mode&0o111 != 0:
		return "100755"
	}
	return "100644"
}
