package gitsource

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// A reader reads objects of known commits.
type reader struct {
	repo *Repo
	// layer is the store of FetchRef, on top of the main store; nil reads the main store only.
	// An object missing in the layer is not damage of the main store.
	layer *store
}

// reader returns a reader of the store that has a commit.
func (r *Repo) reader(h plumbing.Hash) reader {
	r.branchMu.Lock()
	defer r.branchMu.Unlock()
	if st := r.stored.Load(); !st.has(h) && r.branch != nil && r.branch.below == st && r.branch.has(h) {
		return reader{r, r.branch}
	}
	return reader{repo: r}
}

func (r reader) withStore(read func(*store) error) error {
	if r.layer != nil {
		return read(r.layer)
	}
	return r.repo.withStore(read)
}

// object reads one object.
func (r reader) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	var content []byte
	err := r.withStore(func(st *store) (err error) {
		content, err = st.object(t, h, r.repo.cfg.Limits.FileBytes)
		return err
	})
	return content, err
}

// size returns how long an object is.
func (r reader) size(h plumbing.Hash) (int64, error) {
	var n int64
	err := r.withStore(func(st *store) (err error) {
		n, err = st.size(h)
		return err
	})
	return n, err
}

// tree reads a directory; the result is shared and must not be changed.
func (r reader) tree(h plumbing.Hash) ([]entry, error) {
	var entries []entry
	err := r.withStore(func(st *store) (err error) {
		entries, err = r.repo.trees.read(st, h)
		return err
	})
	return entries, err
}

// commit reads a commit. One that the store never had is not damage: it may have been lost with
// an earlier store.
func (r reader) commit(h plumbing.Hash) (*commit, error) {
	known := false
	if err := r.withStore(func(st *store) error { known = st.has(h); return nil }); err != nil || !known {
		return nil, fmt.Errorf("commit %s: %w", h, ErrUnknownCommit)
	}
	content, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return parseCommit(h, content)
}

// tree reads a directory from the main store.
func (r *Repo) tree(h plumbing.Hash) ([]entry, error) { return reader{repo: r}.tree(h) }

// commit reads a commit from the main store.
func (r *Repo) commit(h plumbing.Hash) (*commit, error) { return reader{repo: r}.commit(h) }
