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

// exceeded is an object whose fetch or check has exceeded a limit, and how often in a row. That can take minutes of computing, and a
// poll finds the same object again and again. It is tried ever more rarely, after a minute first and then up to refusalLasts: the
// remote may send it in another way, or faster.
type exceeded struct {
	object plumbing.Hash
	times  int
	until  time.Time // it is not tried before
	err    error
}

// An exceededError is the reason why an object is not tried again before a time. The remote works, and another commit is fetched.
type exceededError struct{ exceeded }

// Error returns the reason, and what can be done.
func (e *exceededError) Error() string {
	return fmt.Sprintf("%s; %s is not tried again before %s; push another commit, or run gitfleet sync to retry it",
		e.err, e.object, e.until.UTC().Format(time.RFC3339))
}

// Unwrap returns the limit.
func (e *exceededError) Unwrap() error { return e.err }

// unlessExceeded fetches or checks an object, unless that has exceeded a limit a short time ago.
func unlessExceeded(ctx context.Context, r *Repo, object plumbing.Hash, try func() error) error {
	if r.exceeded.object != object {
		r.exceeded = exceeded{}
	}
	if time.Now().Before(r.exceeded.until) {
		return &exceededError{r.exceeded}
	}
	err := try()
	if err == nil {
		return nil
	}
	err = orCause(ctx, err)
	if _, refused := errors.AsType[*CommitError](err); refused || !errors.Is(err, ErrTooLarge) {
		return err
	}
	times := r.exceeded.times + 1
	r.exceeded = exceeded{object, times, time.Now().Add(retryafter.Failures(times, time.Minute, refusalLasts)), err}
	return &exceededError{r.exceeded}
}
