package gitsource

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Run polls until ctx is done. It calls head in the goroutine of the caller with each new commit,
// one at a time; nothing is polled meanwhile. It begins with the last accepted commit of the
// store, if there is one, before the first poll. A failed poll changes nothing and is retried with
// backoff. When a damaged store was cloned again, head is called again with its commit. Run
// returns nil when ctx is done, after everything it started has ended.
func (r *Repo) Run(ctx context.Context, head func(Commit)) error {
	if c := r.restore(ctx); c != nil {
		handOver(ctx, r, c, head)
	}
	for ctx.Err() == nil {
		start := time.Now()
		c, err := r.poll(ctx)
		r.steps.set(pollStep, "")
		if ctx.Err() != nil {
			break
		}
		took := time.Since(start)
		r.recordPoll(time.Now(), err)
		if c != nil {
			handOver(ctx, r, c, head)
		}
		if r.cfg.Hooks.Polled != nil {
			r.cfg.Hooks.Polled(took, err)
		}
		r.wait(ctx, requestedDelay(err))
	}
	return nil
}

// handOver calls head with a commit.
func handOver(ctx context.Context, r *Repo, c *objects.Commit, head func(Commit)) {
	public := r.cfg.Signatures.publicCommit(c)
	r.recordHead(ctx, public)
	r.steps.set(pollStep, "loading commit "+public.Hash)
	head(public)
	r.steps.set(pollStep, "")
	// The bases of deltas are needed while a commit is loaded, but not until the next one.
	r.stored.Load().DropBases()
}

// wait waits for the next poll, or for a request for one. A request does not shorten the delay that a server
// asked for.
func (r *Repo) wait(ctx context.Context, retryAfter time.Duration) {
	r.mu.Lock()
	wait := r.backoff.next(r.remoteFailures, retryAfter, rand.Float64()) //nolint:gosec // spreading load
	now := time.Now()
	r.status.NextPoll = now.Add(wait)
	r.mu.Unlock()
	if sleep(ctx, wait, r.pollRequests) {
		sleep(ctx, max(retryAfter, r.backoff.minDelay)-time.Since(now), nil)
	}
}

// sleep waits for a time, or until ctx is done or it is woken, and reports whether it was woken.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	case <-wake:
		return true
	}
}

// restore returns the last accepted commit, if the store has all of it.
func (r *Repo) restore(ctx context.Context) *objects.Commit {
	st := r.stored.Load()
	h, ok := st.AcceptedRef(r.key())
	if !ok {
		return nil
	}
	c, err := r.commit(h)
	if err == nil {
		err = objects.Complete(ctx, st, c.Tree, noneKnown)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		r.cfg.Logger.Warn("the stored commit cannot be read; the repository will be cloned again",
			"commit", h.String(), "err", remote.Redact(err.Error()))
		r.damaged(err)
		return nil
	}
	r.last.commit = h
	return c
}

func (r *Repo) recordHead(ctx context.Context, c Commit) {
	r.mu.Lock()
	before := r.status.Head
	r.status.Head = c.Hash
	r.mu.Unlock()
	if before != "" && before != c.Hash {
		if descends, err := r.Contains(ctx, c.Hash, before); err == nil && !descends {
			r.cfg.Logger.Warn("the history was rewritten: the new commit does not descend from the one before", "commit", c.Hash, "before", before, "author", c.Author)
		}
	}
	r.cfg.Logger.Info("new commit", "commit", c.Hash, "subject", c.Subject)
}
