package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// pack returns the limits of a pack.
func (l Limits) pack() objects.Limits {
	return objects.Limits{Objects: l.Objects, ObjectBytes: l.ObjectBytes, UnpackedBytes: l.UnpackedBytes}
}

// withFetchTime limits the time of a fetch, with everything that is computed for it.
func (l Limits) withFetchTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.FetchTime, fmt.Errorf("%w: it takes longer than %s (limits.fetchTime)", ErrTooLarge, l.FetchTime))
}

// fetchLayer fetches a commit into a new store on top of the main one. The new store has only
// the objects that the tracked history does not have.
func (r *Repo) fetchLayer(ctx context.Context, s remote.Session, dir string, h plumbing.Hash) (*objects.Store, error) {
	if err := os.RemoveAll(dir); err != nil { // left by a process that was killed
		return nil, err
	}
	st := r.stored.Load()
	haves, err := r.haves(ctx, st)
	if err != nil {
		return nil, err
	}
	pack, err := s.Fetch(ctx, remote.FetchRequest{Wants: []plumbing.Hash{h}, Haves: haves, Has: st.Has})
	if err != nil {
		return nil, err
	}
	layer, err := objects.Create(dir)
	if err != nil {
		return nil, errors.Join(err, pack.Close(), os.RemoveAll(dir))
	}
	layer.Below = st
	if err := errors.Join(layer.AddPack(ctx, pack, r.cfg.Limits.ofBranch().pack()), pack.Close()); err != nil {
		return nil, errors.Join(err, layer.Remove())
	}
	return layer, nil
}

// layeredObjects reads objects from a store and keeps new objects in memory. The store is not
// changed.
type layeredObjects struct {
	*memory.Storage
	store *objects.Store
	// limit is the largest object that is read from the store, in bytes.
	limit int64
}

// EncodedObject implements storer.EncodedObjectStorer.
func (l *layeredObjects) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	if o, err := l.Storage.EncodedObject(t, h); err == nil {
		return o, nil
	}
	if !l.store.Has(h) {
		return nil, plumbing.ErrObjectNotFound
	}
	raw, err := l.store.Object(t, h, l.limit)
	if err != nil {
		return nil, err
	}
	return encoded(t, raw)
}

func encoded(t plumbing.ObjectType, raw []byte) (plumbing.EncodedObject, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(t)
	_, err := o.Write(raw)
	return o, err
}

// contentOf returns the content of an object.
func contentOf(o plumbing.EncodedObject) ([]byte, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// maxHaves is the maximum number of local commits that are announced to the remote.
const maxHaves = 256

// haves returns the newest ancestors of the accepted commit. The store must have everything
// that they refer to, so that shallow fetches are impossible.
func (r *Repo) haves(ctx context.Context, st *objects.Store) ([]plumbing.Hash, error) {
	h, ok := st.AcceptedRef(r.key())
	if !ok || !st.Has(h) {
		return nil, nil
	}
	queue, seen := []plumbing.Hash{h}, map[plumbing.Hash]bool{h: true}
	for i := 0; i < len(queue) && len(queue) < maxHaves; i++ {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c, err := readCommit(st, queue[i])
		if err != nil {
			if objects.IsDamage(err) {
				r.damaged(err)
			}
			return nil, err
		}
		for _, p := range c.Parents {
			if !seen[p] && st.Has(p) {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return queue, nil
}
