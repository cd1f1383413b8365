package gitsource

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A reader reads objects of fetched commits.
type reader struct {
	repo *Repo
	// layer is the store of FetchRef, on top of the main store; nil if only the main store is
	// read. An object that is missing in the layer does not mean that the main store is
	// damaged.
	layer *objects.Store
}

// reader returns a reader of the store that has a commit.
func (r *Repo) reader(h plumbing.Hash) reader {
	r.branchMu.Lock()
	defer r.branchMu.Unlock()
	if st := r.stored.Load(); !st.Has(h) && r.branch != nil && r.branch.Below == st && r.branch.Has(h) {
		return reader{r, r.branch}
	}
	return reader{repo: r}
}

func (r reader) withStore(read func(*objects.Store) error) error {
	if r.layer != nil {
		return read(r.layer)
	}
	return r.repo.withStore(read)
}

// object reads one object.
func (r reader) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	var content []byte
	err := r.withStore(func(st *objects.Store) (err error) {
		content, err = st.Object(t, h, r.repo.cfg.Limits.FileBytes)
		return err
	})
	return content, err
}

// size returns the size of an object.
func (r reader) size(h plumbing.Hash) (int64, error) {
	var n int64
	err := r.withStore(func(st *objects.Store) (err error) {
		n, err = st.Size(h)
		return err
	})
	return n, err
}

// tree reads a directory; the result is shared and must not be changed.
func (r reader) tree(h plumbing.Hash) ([]objects.TreeEntry, error) {
	var entries []objects.TreeEntry
	err := r.withStore(func(st *objects.Store) (err error) {
		entries, err = r.repo.trees.Read(st, h)
		return err
	})
	return entries, err
}

// commit reads a commit. A commit that the store never had is not damage: it may have been lost
// with an earlier store.
func (r reader) commit(h plumbing.Hash) (*objects.Commit, error) {
	known := false
	if err := r.withStore(func(st *objects.Store) error { known = st.Has(h); return nil }); err != nil || !known {
		return nil, fmt.Errorf("commit %s: %w", h, ErrUnknownCommit)
	}
	content, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return objects.ParseCommit(h, content)
}

// tree reads a directory from the main store.
func (r *Repo) tree(h plumbing.Hash) ([]objects.TreeEntry, error) { return reader{repo: r}.tree(h) }

// commit reads a commit from the main store.
func (r *Repo) commit(h plumbing.Hash) (*objects.Commit, error) { return reader{repo: r}.commit(h) }
