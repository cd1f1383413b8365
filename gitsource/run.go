package gitsource

import (
	"context"
	"math/rand/v2"
	"time"
)

// Run polls until ctx is done and calls head with each new commit, one at a
// time, from its own goroutine; the first is the one last accepted, if the
// store has one, before the remote is asked at all. A remote that fails changes
// nothing: it is asked again, less and less often. After a damaged store was
// cloned anew, head is called again with the commit it had. Run answers nil
// when ctx is done, and has stopped everything it started by then.
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
		r.note(time.Now(), err)
		if c != nil {
			r.hand(c, head)
		}
		if r.cfg.Metrics.Polled != nil {
			r.cfg.Metrics.Polled(took, err)
		}
		r.rest(ctx, wish(err))
	}
	return nil
}

func (r *Repo) hand(c *commit, head func(Commit)) {
	public := c.public()
	r.noteHead(public)
	head(public)
	// Files are read when a commit is loaded; until the next one, what they were
	// rebuilt from need not be held.
	r.stored.Load().bases.clear()
}

// rest waits for the next turn or a nudge. A nudge does not overrule a server
// that asked to be left alone.
func (r *Repo) rest(ctx context.Context, wish time.Duration) {
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

// restore answers the commit that was last accepted, if all of it is here.
func (r *Repo) restore() *commit {
	st := r.stored.Load()
	h, ok := st.acceptedRef(r.key())
	if !ok {
		return nil
	}
	c, err := r.commit(h)
	if err == nil {
		err = complete(st, c.tree, nothingKnown)
	}
	if err != nil {
		r.cfg.Logger.Warn("the stored commit cannot be read; the repository will be cloned anew",
			"commit", h.String(), "err", redact(err.Error()))
		r.damaged(err)
		return nil
	}
	r.last.head = h
	return c
}
