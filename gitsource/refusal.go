package gitsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
	"github.com/gitfleet/gitfleet/gitsource/retryafter"
	"github.com/gitfleet/gitfleet/gitsource/signature"
)

// refusalLasts is how long a refused commit is not checked again although nothing has changed. It ends because keys of signers
// may be valid from some time on.
const refusalLasts = time.Hour

// A refusal is why the object of the reference was not accepted, and what this depends on: the store, the commit accepted
// before, and the keys of signers. Checking a commit can take minutes, and a poll finds the same one again and again.
type refusal struct {
	object, base plumbing.Hash
	store        *objects.Store
	keys         string
	at           time.Time
	err          error
}

// holds reports whether what was refused would be refused again.
func (f refusal) holds(found refusal) bool {
	age := found.at.Sub(f.at)
	return f.err != nil && 0 <= age && age < refusalLasts &&
		f.object == found.object && f.base == found.base && f.store == found.store && f.keys == found.keys
}

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

// exceeded is the object whose fetch or check has exceeded a limit last, and how often that happened in a row, whatever the object.
// It can take minutes of computing, and a poll finds the same object again and again, or another one each time. It is tried ever
// more rarely, after a minute first and then up to refusalLasts: the remote may send it in another way, or faster.
type exceeded struct {
	object plumbing.Hash
	times  int
	at     time.Time
	err    error
}

// othersWait is how long the delay grows for other objects than the one that has exceeded a limit: one of them may be the remedy.
const othersWait = 10 * time.Minute

// until returns the time before which an object is not tried.
func (e exceeded) until(object plumbing.Hash) time.Time {
	most := refusalLasts
	if object != e.object {
		most = othersWait
	}
	return e.at.Add(retryafter.Failures(e.times, time.Minute, most))
}

// An exceededError is the reason why an object is not tried before a time. The remote works.
type exceededError struct {
	exceeded
	waits plumbing.Hash // the object that is not tried
}

// Error returns the reason, and what can be done.
func (e *exceededError) Error() string {
	until := e.until(e.waits).UTC().Format(time.RFC3339)
	if e.waits != e.object {
		return fmt.Sprintf("%s was not fetched: %s; %s is not tried before %s; run gitfleet sync to try it now", e.object, e.err, e.waits, until)
	}
	return fmt.Sprintf("%s; %s is not tried again before %s; push another commit, or run gitfleet sync to retry it", e.err, e.object, until)
}

// Unwrap returns the limit.
func (e *exceededError) Unwrap() error { return e.err }

// unlessExceeded fetches or checks an object, unless that or another one has exceeded a limit a short time ago.
func unlessExceeded(ctx context.Context, r *Repo, object plumbing.Hash, try func() error) error {
	if time.Now().Before(r.exceeded.until(object)) {
		return &exceededError{r.exceeded, object}
	}
	r.waited = 0
	start := time.Now()
	err := try()
	if err == nil {
		return nil
	}
	err = orCause(ctx, err)
	if ctx.Err() != nil && time.Since(start)-r.waited < r.cfg.Limits.FetchTime/2 {
		return err // the network or the remote was slow, which is a failure like any other
	}
	if _, refused := errors.AsType[*CommitError](err); refused || !errors.Is(err, ErrTooLarge) {
		return err
	}
	r.exceeded = exceeded{object, r.exceeded.times + 1, time.Now(), err}
	return &exceededError{r.exceeded, object}
}
