package gitsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/revlist"

	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// Push creates a branch on the remote of cfg, at a commit of the clone. It never changes an
// existing branch, so that the tracked branch is safe.
func (c *Clone) Push(ctx context.Context, cfg Config, branch, commit string) error {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	where, err := remote.ParseLocation(cfg.URL)
	if err != nil {
		return err
	}
	target, err := remote.New(cfg.remote(), where)
	if err != nil {
		return err
	}
	defer target.Close()
	to, ok := target.(remote.Pusher)
	if !ok {
		return fmt.Errorf("push to %s: it is a directory: use git push", where)
	}
	if err := c.push(ctx, to, plumbing.NewBranchReferenceName(branch), plumbing.NewHash(commit)); err != nil {
		return fmt.Errorf("push branch %s to %s: %w", branch, where, remote.ExplainRefusal(err))
	}
	return nil
}

func (c *Clone) push(ctx context.Context, to remote.Pusher, ref plumbing.ReferenceName, h plumbing.Hash) (err error) {
	s, err := to.StartPush(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	refs, err := s.List(ctx)
	if err != nil {
		return err
	}
	if _, there := refs.References[ref.String()]; there {
		return errors.New("the remote has a branch of that name already: delete it there, or name another")
	}
	var have []plumbing.Hash
	for _, there := range refs.References {
		if c.repo.Storer.HasEncodedObject(there) == nil {
			have = append(have, there)
		}
	}
	objects, err := revlist.Objects(c.repo.Storer, []plumbing.Hash{h}, have)
	if err != nil {
		return fmt.Errorf("list objects that the remote does not have: %w", err)
	}
	return remote.Update(ctx, s, refs, &packp.Command{Name: ref, Old: plumbing.ZeroHash, New: h}, c.repo.Storer, objects)
}
