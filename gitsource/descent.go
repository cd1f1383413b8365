package gitsource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// Contains reports whether head is commit or one of its descendants. head is a commit that was
// fetched at any time, and commit a hash or an abbreviated one; a commit that was never fetched
// is in no history. It returns an error when ctx is done.
func (r *Repo) Contains(ctx context.Context, head, commit string) (bool, error) {
	h, err := objects.ParseHash(head)
	if err != nil {
		return false, err
	}
	newest, err := r.commit(h)
	if err != nil {
		return false, err
	}
	contains := false
	err = r.withStore(func(st *objects.Store) error {
		for _, candidate := range st.WithPrefix(strings.ToLower(commit)) {
			switch _, descends, err := between(st, candidate, newest, ctx.Err); {
			case errors.Is(err, objects.ErrWrongType), errors.Is(err, ErrTooLarge):
				// another object than a commit, whose hash begins with these digits
			case err != nil:
				return err
			case descends:
				contains = true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("history of commit %s: %w", h, err)
	}
	return contains, nil
}
