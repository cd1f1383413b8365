package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/gitsource/signature"
)

// poll polls the remote once. It returns the new commit, or nil if there is none. A failed poll
// does not change what was accepted before.
func (r *Repo) poll(ctx context.Context) (*objects.Commit, error) {
	if r.retry.Swap(false) {
		r.refused, r.exceeded = refusal{}, exceeded{}
	}
	st := r.stored.Load()
	damage := r.damage.Load()
	if h := r.cfg.Ref.pinned(); damage == nil && !h.IsZero() && st.Has(h) {
		return r.acceptHead(ctx, st, h) // a pinned commit never moves
	}
	ctx, cancel := r.cfg.Limits.withFetchTime(ctx)
	defer cancel()
	r.steps.set(pollStep, "connecting")
	s, err := r.remote.Session(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // nothing was written
	want, err := r.list(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list references: %w", err)
	}
	if damage != nil {
		return r.reclone(ctx, s, want, *damage)
	}
	if want.object != r.last.object && !st.Has(want.object) {
		err := unlessExceeded(ctx, r, want.object, func() error { return r.fetch(ctx, s, st, want) })
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
	}
	return r.acceptHead(ctx, st, want.object)
}

// orCause returns the limit that has ended the work, or else the error.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTooLarge) {
		return cause
	}
	return err
}

// acceptHead accepts the commit that the remote's reference points to, if it has changed.
func (r *Repo) acceptHead(ctx context.Context, st *objects.Store, want plumbing.Hash) (*objects.Commit, error) {
	if want == r.last.object {
		return nil, nil
	}
	base, _ := st.AcceptedRef(r.key())
	var c *objects.Commit
	err := unlessExceeded(ctx, r, want, func() (err error) {
		c, err = acceptUnlessRefused(ctx, r, st, want, base)
		return err
	})
	if err != nil {
		if objects.IsDamage(err) {
			r.damaged(err) // the store lacks objects that a have has announced to the remote
		}
		return nil, err
	}
	r.exceeded = exceeded{}
	known := c.Hash == r.last.commit
	r.last = lastPoll{object: want, commit: c.Hash}
	if known {
		return nil, nil
	}
	return c, nil
}

// reclone fetches everything into a new store, which replaces the old one if it is complete.
func (r *Repo) reclone(ctx context.Context, s remote.Session, want target, why error) (*objects.Commit, error) {
	if wait := r.backoff.clone(r.clones.n) - time.Since(r.clones.last); wait > 0 {
		return nil, fmt.Errorf("store is damaged again, next clone in %s: %w", wait.Round(time.Second), why)
	}
	if time.Since(r.clones.last) > r.backoff.cloneMost {
		r.clones.n = 0
	}
	r.clones = cloneHistory{last: time.Now(), n: r.clones.n + 1}
	next, err := r.storePath.Next()
	if err != nil {
		return nil, fmt.Errorf("clone again: %w", err)
	}
	base, _ := r.stored.Load().AcceptedRef(r.key())
	var c *objects.Commit
	err = recovered(r, func() (err error) {
		if err = r.fetch(ctx, s, next, want); err == nil {
			c, err = r.accept(ctx, next, want.object, base)
		}
		return err
	})
	if err == nil {
		refs := objects.AcceptedRefs(r.stored.Load().Dir)
		delete(refs, r.key())
		err = next.SetAcceptedRefs(refs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clone again: %w", err), next.Close(), os.RemoveAll(next.Dir))
	}
	old := r.stored.Swap(next)
	r.damage.Store(nil)
	r.last = lastPoll{object: want.object, commit: c.Hash}
	r.cfg.Logger.Info("the repository was cloned again", "commit", c.Hash.String())
	if err := errors.Join(old.Close(), os.RemoveAll(old.Dir)); err != nil {
		r.cfg.Logger.Warn("the damaged store could not be removed", "err", remote.Redact(err.Error()))
	}
	return c, nil
}

// errEmptyRepository replaces the library's error about an empty repository, which it also
// returns if the repository has no references.
var errEmptyRepository = errors.New("the remote repository has no branch and no tag: it is empty, or its only branch was deleted")

func (r *Repo) list(ctx context.Context, s remote.Session) (target, error) {
	r.steps.set(pollStep, "listing references")
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limits.ListTime)
	defer cancel()
	var refs *packp.AdvRefs
	err := recovered(r, func() (err error) {
		refs, err = s.List(ctx)
		return err
	})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		err = errEmptyRepository
	}
	if err != nil {
		return target{}, err
	}
	return r.cfg.Ref.resolve(refs)
}

// fetch fetches a target with its history into a store.
func (r *Repo) fetch(ctx context.Context, s remote.Session, st *objects.Store, want target) error {
	end, err := r.cfg.Hooks.fetching(want.object)
	if err != nil {
		return err
	}
	defer end()
	start := time.Now()
	r.steps.set(pollStep, "receiving and unpacking objects")
	err = r.receive(ctx, s, st, want)
	if r.cfg.Hooks.Fetched != nil {
		r.cfg.Hooks.Fetched(time.Since(start), s.Received(), err)
	}
	return err
}

func (r *Repo) receive(ctx context.Context, s remote.Session, st *objects.Store, want target) error {
	haves, err := r.haves(ctx, st)
	if err != nil {
		return err
	}
	f := remote.FetchRequest{Haves: haves, Has: st.Has}
	for _, h := range want.wants {
		if st.Has(h) {
			f.Haves = append(f.Haves, h)
		} else {
			f.Wants = append(f.Wants, h)
		}
	}
	if len(f.Wants) > 0 {
		start := time.Now()
		pack, err := s.Fetch(ctx, f)
		r.waited += time.Since(start)
		if err != nil {
			return err
		}
		if err := errors.Join(st.AddPack(ctx, timedReader{pack, &r.waited}, r.cfg.Limits.pack()), pack.Close()); err != nil {
			return err
		}
	}
	if !st.Has(want.object) {
		return fmt.Errorf("%s: %w", r.cfg.Ref, ErrRefNotFound)
	}
	return st.JoinPacks(ctx, r.cfg.Limits.Packs)
}

// A timedReader adds the time that it waits for a remote.
type timedReader struct {
	io.Reader
	waited *time.Duration
}

func (t timedReader) Read(p []byte) (int, error) {
	start := time.Now()
	n, err := t.Reader.Read(p)
	*t.waited += time.Since(start)
	return n, err
}

// accept checks that the store has every object of a commit and, if signatures are required,
// that each commit since base is signed. Then it records the commit as accepted. base is the
// commit that was accepted before; zero if there was none.
func (r *Repo) accept(ctx context.Context, st *objects.Store, want, base plumbing.Hash) (*objects.Commit, error) {
	r.steps.set(pollStep, "checking the commit and its signatures")
	end, err := r.cfg.Hooks.fetching(want)
	if err != nil {
		return nil, err
	}
	defer end()
	h, err := st.Peel(want)
	if err != nil {
		return nil, err
	}
	c, err := readCommit(st, h)
	if err != nil {
		return nil, err
	}
	known := noneKnown // nothing in a new store was checked before
	if st == r.stored.Load() {
		known = r.directoriesOf(ctx, r.last.commit)
	}
	if err := objects.Complete(ctx, st, c.Tree, known); objects.IsDamage(err) {
		return nil, fmt.Errorf("commit %s is incomplete: %w", h, err)
	} else if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, &CommitError{h.String(), err}
	}
	if err := r.verify(ctx, st, base, c); err != nil {
		return nil, err
	}
	if err := st.SetAcceptedRef(r.key(), h); err != nil {
		return nil, fmt.Errorf("record commit %s: %w", h, err)
	}
	return c, nil
}

// directoriesOf returns a function that reports whether a directory is part of an accepted
// commit, and therefore complete. It reports false for all if the commit cannot be read or the
// hash is zero.
func (r *Repo) directoriesOf(ctx context.Context, accepted plumbing.Hash) func(plumbing.Hash) bool {
	c, err := r.commit(accepted)
	if err != nil {
		return noneKnown
	}
	known := map[plumbing.Hash]bool{}
	collect := func(h plumbing.Hash) bool {
		known[h] = true
		return false
	}
	if objects.WalkTrees(ctx, reader{repo: r}.tree, c.Tree, collect, func(object.TreeEntry) error { return nil }) != nil {
		return noneKnown
	}
	return func(h plumbing.Hash) bool { return known[h] }
}

func noneKnown(plumbing.Hash) bool { return false }

// acceptUnlessRefused is accept, unless the same was refused before.
func acceptUnlessRefused(ctx context.Context, r *Repo, st *objects.Store, want, base plumbing.Hash) (*objects.Commit, error) {
	found := refusal{object: want, base: base, store: st, at: time.Now()}
	if s := r.cfg.Signatures; s != nil {
		var err error
		if found.keys, err = signature.Digest(s.OpenPGP, s.AllowedSigners); err != nil {
			return nil, fmt.Errorf("signatures: %w", err)
		}
	}
	if r.refused.holds(found) {
		return nil, r.refused.err
	}
	c, err := r.accept(ctx, st, want, base)
	r.refused = refusal{}
	if _, refused := errors.AsType[*CommitError](err); refused {
		found.err = err
		r.refused = found
	}
	return c, err
}

// unlessExceeded fetches or checks an object, unless that or another one has exceeded a limit, or led to a panic, a short time ago.
func unlessExceeded(ctx context.Context, r *Repo, object plumbing.Hash, try func() error) error {
	if time.Now().Before(r.exceeded.until(object)) {
		return &exceededError{r.exceeded, object}
	}
	r.waited = 0
	start := time.Now()
	err := recovered(r, try)
	if err == nil {
		return nil
	}
	err = orCause(ctx, err)
	if ctx.Err() != nil && time.Since(start)-r.waited < r.cfg.Limits.FetchTime/2 {
		return err // the network or the remote was slow, which is a failure like any other
	}
	if _, refused := errors.AsType[*CommitError](err); refused || !errors.Is(err, ErrTooLarge) && !errors.Is(err, errPanicked) {
		return err
	}
	r.exceeded = exceeded{object, r.exceeded.times + 1, time.Now(), err}
	return &exceededError{r.exceeded, object}
}

// errPanicked is the error of a poll in which the Git library or gitfleet panics.
var errPanicked = errors.New("internal error of gitfleet; see its log")

// recovered calls try, and returns a panic as an error: what a remote sends must not end the daemon.
func recovered(r *Repo, try func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r.cfg.Logger.Error("a poll panicked", "err", remote.Redact(fmt.Sprint(fault)), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return try()
}
