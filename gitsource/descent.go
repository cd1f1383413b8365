package gitsource

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Contains reports whether head, a commit that was fetched at any time, is commit or descends
// from it. commit is a hash or an abbreviated one; one that was never fetched is in no history.
// Contains returns an error when ctx is done.
func (r *Repo) Contains(ctx context.Context, head, commit string) (bool, error) {
	h, err := parseHash(head)
	if err != nil {
		return false, err
	}
	newest, err := r.commit(h)
	if err != nil {
		return false, err
	}
	contains := false
	err = r.withStore(func(st *store) error {
		for _, candidate := range st.withPrefix(strings.ToLower(commit)) {
			switch _, descends, err := between(st, candidate, newest, ctx.Err); {
			case errors.Is(err, errWrongType), errors.Is(err, ErrTooLarge):
				// not a commit, but another object whose hash begins with these digits
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

// withPrefix returns the objects whose hash begins with hexadecimal digits.
func (s *store) withPrefix(digits string) []plumbing.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []plumbing.Hash
	for _, p := range s.packs {
		all = append(all, p.index.withPrefix(digits)...)
	}
	return all
}

// withPrefix returns the hashes that begin with hexadecimal digits.
func (x *index) withPrefix(digits string) []plumbing.Hash {
	if len(digits) > 2*hashBytes {
		return nil
	}
	low, err := hex.DecodeString(digits + strings.Repeat("0", 2*hashBytes-len(digits)))
	if err != nil {
		return nil
	}
	name := func(i int) []byte { return x.names[i*hashBytes : (i+1)*hashBytes] }
	var all []plumbing.Hash
	for i := sort.Search(x.n, func(i int) bool { return bytes.Compare(name(i), low) >= 0 }); i < x.n; i++ {
		h := plumbing.Hash(name(i))
		if !strings.HasPrefix(h.String(), digits) {
			break
		}
		all = append(all, h)
	}
	return all
}
