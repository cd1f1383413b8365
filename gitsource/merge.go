package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// FetchRef fetches the commit of a reference with its full name, such as refs/pull/17/head, so
// that it can be read. Objects that the tracked history does not have are written to a separate
// store of at most 32 MiB, which exists until the next FetchRef or Close. The tracked reference
// and its store do not change. The error is [ErrRefNotFound] if the reference does not exist or
// is not at the commit, and [ErrTooLarge] if the objects exceed the limit. Only one goroutine
// may use it.
func (r *Repo) FetchRef(ctx context.Context, ref, commit string) error {
	h, err := objects.ParseHash(commit)
	if err != nil {
		return err
	}
	if err := r.dropBranch(); err != nil {
		return err
	}
	end, err := r.cfg.Hooks.fetching(h)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", ref, err)
	}
	defer end()
	ctx, cancel := r.cfg.Limits.withFetchTime(ctx)
	defer cancel()
	defer r.steps.set(branchStep, "")
	st := r.stored.Load()
	layer := st
	if !st.Has(h) {
		if layer, err = r.fetchRef(ctx, ref, h); err != nil {
			return fmt.Errorf("fetch %s: %w", ref, orCause(ctx, err))
		}
		r.branchMu.Lock()
		r.branch = layer
		r.branchMu.Unlock()
	}
	c, err := readCommit(layer, h)
	if err == nil {
		accepted, _ := st.AcceptedRef(r.key())
		r.steps.set(branchStep, "checking "+ref)
		err = objects.Complete(ctx, layer, c.Tree, r.directoriesOf(ctx, accepted))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("commit %s is incomplete: %w", h, err), r.dropBranch())
	}
	return nil
}

func (r *Repo) fetchRef(ctx context.Context, ref string, h plumbing.Hash) (*objects.Store, error) {
	defer r.branches.Close()
	r.steps.set(branchStep, "receiving and unpacking "+ref)
	s, err := r.branches.Session(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // nothing was written
	refs, err := s.List(ctx)
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
	// Paths are the paths that both have changed in a way that does not merge, sorted.
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
// only one side has changed is taken from that side. A file that both have changed is merged line
// by line; if that is not possible, the error is a [*ConflictError]. The base must be in the
// tracked history; the head is there too, or is the commit of FetchRef.
func (r *Repo) Merge(ctx context.Context, base, head string) (fs.FS, error) {
	repo, sides, ancestor, err := r.mergeSides(ctx, base, head)
	if err != nil {
		return nil, fmt.Errorf("merge %s into %s: %w", head, base, err)
	}
	m := newMerger(repo, time.Now().Add(mergeTime))
	m.done = ctx.Err
	root, err := m.dirs("", ancestor.Tree, sides[0].Tree, sides[1].Tree, 0)
	if err != nil {
		return nil, err
	}
	if len(m.conflicts) > 0 {
		slices.Sort(m.conflicts)
		return nil, &ConflictError{m.conflicts}
	}
	return &files{ctx: ctx, objects: m.merged, root: root, time: sides[1].Time, commit: head}, nil
}

// maxMergedBytes bounds the files that one merge makes, which are kept in memory.
const maxMergedBytes = 32 * mib

// mergedObjects are the objects of two commits and of their merge.
type mergedObjects struct {
	objectReader
	// trees are the merged directories that neither side has, and blobs the merged files, by
	// their hash in Git.
	trees map[plumbing.Hash][]object.TreeEntry
	blobs map[plumbing.Hash][]byte
}

func (m mergedObjects) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	if entries, ok := m.trees[h]; ok {
		return entries, nil
	}
	return m.objectReader.tree(h)
}

func (m mergedObjects) entry(dir plumbing.Hash, name string) (object.TreeEntry, bool, error) {
	if entries, ok := m.trees[dir]; ok {
		e, found := objects.FindEntry(entries, name)
		return e, found, nil
	}
	return m.objectReader.entry(dir, name)
}

func (m mergedObjects) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	if content, ok := m.blobs[h]; ok {
		return bytes.Clone(content), nil
	}
	return m.objectReader.object(t, h)
}

func (m mergedObjects) size(h plumbing.Hash) (int64, error) {
	if content, ok := m.blobs[h]; ok {
		return int64(len(content)), nil
	}
	return m.objectReader.size(h)
}

// A merger merges trees by their entries.
type merger struct {
	merged mergedObjects
	// mergedBytes is the size of the merged files.
	mergedBytes int
	conflicts   []string
	// deadline is when files are not compared line by line any more.
	deadline time.Time
	// done returns an error once the work has to end.
	done func() error
}

func newMerger(from objectReader, deadline time.Time) *merger {
	return &merger{deadline: deadline, done: func() error { return nil }, merged: mergedObjects{from, map[plumbing.Hash][]object.TreeEntry{}, map[plumbing.Hash][]byte{}}}
}

// dirs merges one directory. The zero hash stands for an empty one.
func (m *merger) dirs(path string, base, one, other plumbing.Hash, depth int) (plumbing.Hash, error) {
	switch {
	case one == other || other == base:
		return one, nil
	case one == base:
		return other, nil
	case m.done() != nil:
		return plumbing.ZeroHash, m.done()
	}
	var sides [3][]object.TreeEntry
	for i, h := range []plumbing.Hash{base, one, other} {
		var err error
		if sides[i], err = treeReader(m.merged.tree).readDir(path, h, depth); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	var merged []object.TreeEntry
	for name, e := range byName(sides[:]...) {
		e, err := m.entry(strings.TrimPrefix(path+"/"+name, "/"), e[0], e[1], e[2], depth)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if e.Name != "" {
			merged = append(merged, e)
		}
	}
	if len(merged) == 0 && path != "" {
		return plumbing.ZeroHash, nil
	}
	h, err := hashTree(merged)
	m.merged.trees[h] = merged
	return h, err
}

// entry merges the entries of one name; an absent entry is zero.
func (m *merger) entry(path string, base, one, other object.TreeEntry, depth int) (object.TreeEntry, error) {
	switch {
	case one == other || other == base:
		return one, nil
	case one == base:
		return other, nil
	case isFile(base) && isFile(one) && isFile(other):
		merged, ok, err := m.file(base, one, other)
		if err != nil {
			return object.TreeEntry{}, fmt.Errorf("%s: %w", path, err)
		}
		if !ok {
			m.conflicts = append(m.conflicts, path)
		}
		return merged, nil
	case one.Mode != filemode.Dir || other.Mode != filemode.Dir:
		m.conflicts = append(m.conflicts, path)
		return one, nil
	}
	h, err := m.dirs(path, dirHash(base), one.Hash, other.Hash, depth+1)
	if err != nil || h.IsZero() {
		return object.TreeEntry{}, err
	}
	one.Hash = h
	return one, nil
}

func isFile(e object.TreeEntry) bool {
	return e.Mode == filemode.Regular || e.Mode == filemode.Executable
}

// file merges a file that both sides have changed. ok is false if they conflict.
func (m *merger) file(base, one, other object.TreeEntry) (merged object.TreeEntry, ok bool, err error) {
	merged = one
	if one.Mode == base.Mode {
		merged.Mode = other.Mode // there are only two, so that no third one is possible
	}
	switch {
	case one.Hash == other.Hash || other.Hash == base.Hash:
		return merged, true, nil
	case one.Hash == base.Hash:
		merged.Hash = other.Hash
		return merged, true, nil
	}
	versions := []object.TreeEntry{base, one, other}
	for _, e := range versions {
		if time.Now().After(m.deadline) {
			return one, false, nil
		}
		if n, err := m.merged.size(e.Hash); err != nil || n > maxDiffBytes {
			return one, false, err
		}
	}
	var contents [3][]byte
	for i, e := range versions {
		switch contents[i], err = m.merged.object(plumbing.BlobObject, e.Hash); {
		case errors.Is(err, ErrTooLarge):
			return one, false, nil
		case err != nil:
			return one, false, err
		}
	}
	content, ok := mergeLines(contents[0], contents[1], contents[2], m.deadline)
	if !ok {
		return one, false, nil
	}
	merged.Hash = plumbing.ComputeHash(plumbing.BlobObject, content)
	if m.merged.blobs[merged.Hash] != nil {
		return merged, true, nil
	}
	if m.mergedBytes += len(content); m.mergedBytes > maxMergedBytes {
		return one, false, nil
	}
	m.merged.blobs[merged.Hash] = content
	return merged, true, nil
}

// hashTree returns the Git hash of a directory.
func hashTree(entries []object.TreeEntry) (plumbing.Hash, error) {
	raw := &plumbing.MemoryObject{}
	err := treeOf(entries).Encode(raw)
	return raw.Hash(), err
}
