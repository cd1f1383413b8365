package gitsource

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Run polls until ctx is done. It calls head from its own goroutine with each new commit, one
// at a time, beginning with the last accepted commit of the store, if there is one, before the
// first poll. A failed poll changes nothing and is retried with backoff. When a damaged store
// was cloned again, head is called again with its commit. Run returns nil when ctx is done,
// after everything it started has ended.
func (r *Repo) Run(ctx context.Context, head func(Commit)) error {
	if c := r.restore(); c != nil {
		r.hand(c, head)
	}
	for ctx.Err() == nil {
		start := time.Now()
		c, err := r.poll(ctx)
		if ctx.Err() != nil {
			break
		}
		took := time.Since(start)
		r.recordPoll(time.Now(), err)
		if c != nil {
			r.hand(c, head)
		}
		if r.cfg.Metrics.Polled != nil {
			r.cfg.Metrics.Polled(took, err)
		}
		r.wait(ctx, requestedDelay(err))
	}
	return nil
}

func (r *Repo) hand(c *objects.Commit, head func(Commit)) {
	public := publicCommit(c)
	r.recordHead(public)
	head(public)
	// The bases of deltas are needed while a commit is loaded, but not until the next one.
	r.stored.Load().DropBases()
}

// wait waits for the next poll or a nudge. A nudge does not shorten the delay that a server
// asked for.
func (r *Repo) wait(ctx context.Context, wish time.Duration) {
	r.mu.Lock()
	wait := r.backoff.next(r.failures, wish, rand.Float64()) //nolint:gosec // spreading load
	now := time.Now()
	r.status.NextPoll = now.Add(wait)
	r.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.nudges:
		hold := time.NewTimer(max(wish, r.backoff.quiet) - time.Since(now))
		defer hold.Stop()
		select {
		case <-ctx.Done():
		case <-hold.C:
		}
	}
}

// restore returns the last accepted commit, if the store has all of it.
func (r *Repo) restore() *objects.Commit {
	st := r.stored.Load()
	h, ok := st.AcceptedRef(r.key())
	if !ok {
		return nil
	}
	c, err := r.commit(h)
	if err == nil {
		err = objects.Complete(st, c.Tree, noneKnown)
	}
	if err != nil {
		r.cfg.Logger.Warn("the stored commit cannot be read; the repository will be cloned again",
			"commit", h.String(), "err", remote.Redact(err.Error()))
		r.damaged(err)
		return nil
	}
	r.last.head = h
	return c
}
