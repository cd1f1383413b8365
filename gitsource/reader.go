package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A reader is the objectReader of fetched commits.
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

// fromStore is withStore for a function with a result.
func fromStore[T any](r reader, read func(*objects.Store) (T, error)) (result T, err error) {
	err = r.withStore(func(st *objects.Store) (err error) {
		result, err = read(st)
		return err
	})
	return result, err
}

func (r reader) object(t plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	return fromStore(r, func(st *objects.Store) ([]byte, error) { return st.Object(t, h, r.repo.cfg.Limits.FileBytes) })
}

func (r reader) size(h plumbing.Hash) (int64, error) {
	return fromStore(r, func(st *objects.Store) (int64, error) { return st.Size(h) })
}

func (r reader) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	return fromStore(r, func(st *objects.Store) ([]object.TreeEntry, error) { return r.repo.trees.Read(h, st.Tree) })
}

func (r reader) entry(dir plumbing.Hash, name string) (e object.TreeEntry, ok bool, err error) {
	err = r.withStore(func(st *objects.Store) (err error) {
		e, ok, err = r.repo.trees.Find(dir, name, st.Tree)
		return err
	})
	return e, ok, err
}

// commit reads a commit. A commit that the store never had is not damage: it may have been lost
// with an earlier store.
func (r reader) commit(h plumbing.Hash) (*objects.Commit, error) {
	if known, err := fromStore(r, func(st *objects.Store) (bool, error) { return st.Has(h), nil }); err != nil || !known {
		return nil, fmt.Errorf("commit %s: %w", h, ErrUnknownCommit)
	}
	content, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	return objects.ParseCommit(h, content)
}

// commit reads a commit from the main store.
func (r *Repo) commit(h plumbing.Hash) (*objects.Commit, error) { return reader{repo: r}.commit(h) }

// Commit returns the metadata of a commit that was fetched at any time, or of the commit of the
// last FetchRef.
func (r *Repo) Commit(_ context.Context, hash string) (Commit, error) {
	h, err := objects.ParseHash(hash)
	if err != nil {
		return Commit{}, err
	}
	c, err := r.reader(h).commit(h)
	if err != nil {
		return Commit{}, err
	}
	return r.cfg.Signatures.publicCommit(c), nil
}

// Files returns the tree of a commit that was fetched at any time, or of the commit of the last
// FetchRef. The file system reads from the object store on demand, and implements fs.ReadDirFS,
// fs.ReadFileFS, fs.ReadLinkFS and fs.StatFS. Nothing can be read any more once ctx is done. Its method Hash(name string) (string, error) returns
// the hash of a file or directory.
func (r *Repo) Files(ctx context.Context, commit string) (fs.FS, error) {
	h, err := objects.ParseHash(commit)
	if err != nil {
		return nil, err
	}
	repo := r.reader(h)
	c, err := repo.commit(h)
	if err != nil {
		return nil, err
	}
	return &files{ctx: ctx, objects: repo, root: c.Tree, time: c.Time, commit: commit}, nil
}

// Contains reports whether head is commit or one of its descendants. head is a commit that was
// fetched at any time, and commit a hash or an abbreviated one; a commit that was never fetched
// is in no history. It returns an error when ctx is done.
func (r *Repo) Contains(ctx context.Context, head, commit string) (bool, error) {
	h, err := objects.ParseHash(head)
	if err != nil {
		return false, err
	}
	newest, err := r.commit(h)
	if err != nil {
		return false, err
	}
	contains := false
	err = r.withStore(func(st *objects.Store) error {
		for _, candidate := range st.WithPrefix(strings.ToLower(commit)) {
			switch _, descends, err := between(st, candidate, newest, ctx.Err); {
			case errors.Is(err, objects.ErrWrongType), errors.Is(err, ErrTooLarge):
				// another object than a commit, whose hash begins with these digits
			case err != nil:
				return err
			case descends:
				contains = true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("history of commit %s: %w", h, err)
	}
	return contains, nil
}
