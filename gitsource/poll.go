package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A poll is what the last successful one saw and gave.
type poll struct{ want, head plumbing.Hash }

// poll asks the remote once. It answers a commit if there is a new one, nil if
// not. Nothing it does half way changes what was accepted before.
func (r *Repo) poll(ctx context.Context) (*commit, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limits.FetchTime)
	defer cancel()
	s, err := r.remote.session(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // nothing is written to it
	want, err := r.list(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list references: %w", err)
	}
	damage := r.damage.Load()
	if damage == nil && want == r.last.want {
		return nil, nil
	}
	st, err := r.bring(ctx, s, want, damage != nil)
	if err != nil {
		return nil, err
	}
	c, err := r.accept(st, want)
	if err != nil {
		return nil, errors.Join(err, r.abandon(st))
	}
	if damage != nil {
		if err := r.replace(st); err != nil {
			return nil, err
		}
		r.last.head = plumbing.ZeroHash
	}
	r.last.want = want
	if c.hash == r.last.head {
		return nil, nil
	}
	r.last.head = c.hash
	return c, nil
}

func (r *Repo) list(ctx context.Context, s session) (plumbing.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limits.ListTime)
	defer cancel()
	refs, err := s.list(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return r.cfg.Ref.resolve(refs)
}

// bring makes sure that the wanted object is in the store it answers: a new
// one if the present one is damaged.
func (r *Repo) bring(ctx context.Context, s session, want plumbing.Hash, anew bool) (*store, error) {
	st := r.stored.Load()
	if !anew {
		if st.has(want) {
			return st, nil
		}
		haves, err := r.haves(st)
		if err != nil {
			return nil, err
		}
		return st, r.fetch(ctx, s, st, want, haves)
	}
	next, err := st.next()
	if err != nil {
		return nil, err
	}
	if err := r.fetch(ctx, s, next, want, nil); err != nil {
		return nil, errors.Join(err, r.abandon(next))
	}
	return next, nil
}

func (r *Repo) fetch(ctx context.Context, s session, st *store, want plumbing.Hash, haves []plumbing.Hash) error {
	start := time.Now()
	err := func() error {
		pack, err := s.fetch(ctx, fetch{wants: []plumbing.Hash{want}, haves: haves, has: st.has})
		if err != nil {
			return err
		}
		return errors.Join(st.add(pack), pack.Close())
	}()
	if r.cfg.Metrics.Fetched != nil {
		r.cfg.Metrics.Fetched(time.Since(start), s.received(), err)
	}
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}

// maxHaves bounds how much of our history is named to the remote.
const maxHaves = 256

// haves are the newest commits that led to the accepted one. All that they
// reach is here, which is why nothing shallow may ever enter the store.
func (r *Repo) haves(st *store) ([]plumbing.Hash, error) {
	h, ok := st.acceptedRef(r.cfg.Ref.key())
	if !ok {
		return nil, nil
	}
	queue, seen := []plumbing.Hash{h}, map[plumbing.Hash]bool{h: true}
	for i := 0; i < len(queue) && len(queue) < maxHaves; i++ {
		raw, err := st.object(plumbing.CommitObject, queue[i], mib)
		if err != nil {
			r.damaged(err)
			return nil, err
		}
		c, err := parseCommit(queue[i], raw)
		if err != nil {
			return nil, err
		}
		for _, p := range c.parents {
			if !seen[p] && st.has(p) {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return queue, nil
}

// accept proves that a commit is whole and remembers it.
func (r *Repo) accept(st *store, want plumbing.Hash) (*commit, error) {
	h, err := st.peel(want)
	if err != nil {
		return nil, err
	}
	raw, err := st.object(plumbing.CommitObject, h, mib)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", h, err)
	}
	c, err := parseCommit(h, raw)
	if err != nil {
		return nil, err
	}
	if err := complete(st, c.tree, r.known(st)); err != nil {
		return nil, fmt.Errorf("commit %s is not whole: %w", h, err)
	}
	if err := st.setAcceptedRef(r.cfg.Ref.key(), h); err != nil {
		return nil, fmt.Errorf("remember commit %s: %w", h, err)
	}
	return c, nil
}

// known tells of the directories that were already found whole: those in the
// cache came from the store of the accepted commits.
func (r *Repo) known(st *store) func(plumbing.Hash) bool {
	if st != r.stored.Load() {
		return nothingKnown
	}
	c, err := r.commit(r.last.head)
	if err != nil {
		return nothingKnown
	}
	known := map[plumbing.Hash]bool{}
	if r.directories(c.tree, known, 0) != nil {
		return nothingKnown
	}
	return func(h plumbing.Hash) bool { return known[h] }
}

// directories collects a tree's directories, itself included.
func (r *Repo) directories(h plumbing.Hash, into map[plumbing.Hash]bool, depth int) error {
	if into[h] || depth > maxDepth {
		return nil
	}
	into[h] = true
	entries, err := r.tree(h)
	for _, e := range entries {
		if err == nil && e.mode.IsDir() {
			err = r.directories(e.hash, into, depth+1)
		}
	}
	return err
}

func nothingKnown(plumbing.Hash) bool { return false }

// replace puts a new store in place of the damaged one.
func (r *Repo) replace(st *store) error {
	old := r.stored.Swap(st)
	r.damage.Store(nil)
	r.cfg.Logger.Info("the repository was cloned anew")
	return errors.Join(old.close(), os.RemoveAll(old.dir))
}

// abandon removes a new store that did not come to be.
func (r *Repo) abandon(st *store) error {
	if st == r.stored.Load() {
		return nil
	}
	return errors.Join(st.close(), os.RemoveAll(st.dir))
}
