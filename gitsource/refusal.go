package gitsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
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
