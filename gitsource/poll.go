package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A poll is what the last successful one saw and gave.
type poll struct{ want, head plumbing.Hash }

// poll asks the remote once. It answers a commit if there is a new one, nil if
// not. Nothing it does half way changes what was accepted before.
func (r *Repo) poll(ctx context.Context) (*commit, error) {
	st := r.stored.Load()
	damage := r.damage.Load()
	if h := r.cfg.Ref.pinned(); damage == nil && !h.IsZero() && st.has(h) {
		return r.take(st, h) // it never moves, so there is nothing to ask
	}
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
	if damage != nil {
		return r.cloneAnew(ctx, s, want, damage.err)
	}
	if want.object != r.last.want && !st.has(want.object) {
		if err := r.fetch(ctx, s, st, want); err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
	}
	return r.take(st, want.object)
}

// take accepts what the remote points at, if it is not what it was.
func (r *Repo) take(st *store, want plumbing.Hash) (*commit, error) {
	if want == r.last.want {
		return nil, nil
	}
	base, _ := st.acceptedRef(r.key())
	c, err := r.accept(st, want, base)
	if err != nil {
		if isDamage(err) {
			r.damaged(err) // what is here is not what we told the remote
		}
		return nil, err
	}
	known := c.hash == r.last.head
	r.last = poll{want: want, head: c.hash}
	if known {
		return nil, nil
	}
	return c, nil
}

// clones remembers when the repository was last cloned anew, and how often in
// a row, so that a broken disk or remote does not make us clone all the time.
type clones struct {
	last time.Time
	n    int
}

// cloneAnew fetches everything into a new store, which takes over if what it
// got is whole.
func (r *Repo) cloneAnew(ctx context.Context, s session, want target, why error) (*commit, error) {
	if wait := r.backoff.clone(r.clones.n) - time.Since(r.clones.last); wait > 0 {
		return nil, fmt.Errorf("store is damaged again, next clone in %s: %w", wait.Round(time.Second), why)
	}
	if time.Since(r.clones.last) > r.backoff.cloneMost {
		r.clones.n = 0
	}
	r.clones = clones{last: time.Now(), n: r.clones.n + 1}
	next, err := r.place.next()
	if err != nil {
		return nil, fmt.Errorf("clone anew: %w", err)
	}
	base, _ := r.stored.Load().acceptedRef(r.key())
	var c *commit
	if err = r.fetch(ctx, s, next, want); err == nil {
		c, err = r.accept(next, want.object, base)
	}
	if err == nil {
		refs := acceptedRefs(r.stored.Load().dir)
		delete(refs, r.key())
		err = next.carry(refs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clone anew: %w", err), next.close(), os.RemoveAll(next.dir))
	}
	old := r.stored.Swap(next)
	r.damage.Store(nil)
	r.last = poll{want: want.object, head: c.hash}
	r.cfg.Logger.Info("the repository was cloned anew", "commit", c.hash.String())
	if err := errors.Join(old.close(), os.RemoveAll(old.dir)); err != nil {
		r.cfg.Logger.Warn("the damaged store could not be removed", "err", redact(err.Error()))
	}
	return c, nil
}

// errNothingThere stands for what the library calls an empty repository: it
// sees only that there is no reference.
var errNothingThere = errors.New("the remote repository has no branch and no tag: it is empty, or its only branch was deleted")

func (r *Repo) list(ctx context.Context, s session) (target, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limits.ListTime)
	defer cancel()
	refs, err := s.list(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		err = errNothingThere
	}
	if err != nil {
		return target{}, err
	}
	return r.cfg.Ref.resolve(refs)
}

// fetch brings what is wanted into a store, together with all it reaches.
func (r *Repo) fetch(ctx context.Context, s session, st *store, want target) error {
	start := time.Now()
	err := r.receive(ctx, s, st, want)
	if r.cfg.Metrics.Fetched != nil {
		r.cfg.Metrics.Fetched(time.Since(start), s.received(), err)
	}
	return err
}

func (r *Repo) receive(ctx context.Context, s session, st *store, want target) error {
	haves, err := r.haves(st)
	if err != nil {
		return err
	}
	f := fetch{haves: haves, has: st.has}
	for _, h := range want.wants {
		if st.has(h) {
			f.haves = append(f.haves, h)
		} else {
			f.wants = append(f.wants, h)
		}
	}
	if len(f.wants) > 0 {
		pack, err := s.fetch(ctx, f)
		if err != nil {
			return err
		}
		if err := errors.Join(st.add(pack, r.cfg.Limits), pack.Close()); err != nil {
			return err
		}
	}
	if !st.has(want.object) {
		return fmt.Errorf("%s: %w", r.cfg.Ref, ErrRefNotFound)
	}
	return st.join(r.cfg.Limits.Packs)
}

// maxHaves bounds how much of our history is named to the remote.
const maxHaves = 256

// haves are the newest commits that led to the accepted one. All that they
// reach is here, which is why nothing shallow may ever enter the store.
func (r *Repo) haves(st *store) ([]plumbing.Hash, error) {
	h, ok := st.acceptedRef(r.key())
	if !ok || !st.has(h) {
		return nil, nil
	}
	queue, seen := []plumbing.Hash{h}, map[plumbing.Hash]bool{h: true}
	for i := 0; i < len(queue) && len(queue) < maxHaves; i++ {
		c, err := readCommit(st, queue[i])
		if err != nil {
			if isDamage(err) {
				r.damaged(err)
			}
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

// accept proves that a commit is whole and properly signed, and remembers it.
// base is the commit accepted before, zero if there was none.
func (r *Repo) accept(st *store, want, base plumbing.Hash) (*commit, error) {
	h, err := st.peel(want)
	if err != nil {
		return nil, err
	}
	c, err := readCommit(st, h)
	if err != nil {
		return nil, err
	}
	if err := complete(st, c.tree, r.known(st)); isDamage(err) {
		return nil, fmt.Errorf("commit %s is not whole: %w", h, err)
	} else if err != nil {
		return nil, &CommitError{h.String(), err}
	}
	if err := r.verify(st, base, c); err != nil {
		return nil, err
	}
	if err := st.setAcceptedRef(r.key(), h); err != nil {
		return nil, fmt.Errorf("remember commit %s: %w", h, err)
	}
	return c, nil
}

// key names in the store what is followed. What was accepted without
// signatures does not count once they are asked for.
func (r *Repo) key() string {
	if r.cfg.Signatures != nil {
		return r.cfg.Ref.key() + "-signed"
	}
	return r.cfg.Ref.key()
}

// known tells of the directories that were already found whole: those of the
// commit accepted last. Of a new store, none are.
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
