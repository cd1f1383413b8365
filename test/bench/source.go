package main

import (
	"context"
	"io/fs"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
)

// A house is the loop's source: the real one, with an eye on when a commit is
// seen.

// Run is that of the repository.
func (h *house) Run(ctx context.Context, head func(gitsource.Commit)) error {
	return h.git.Run(ctx, func(c gitsource.Commit) {
		h.mu.Lock()
		h.seen[c.Hash] = time.Now()
		h.mu.Unlock()
		head(c)
	})
}

// Files is that of the repository.
func (h *house) Files(ctx context.Context, commit string) (fs.FS, error) {
	return h.git.Files(ctx, commit)
}

// Commit is that of the repository.
func (h *house) Commit(ctx context.Context, hash string) (gitsource.Commit, error) {
	return h.git.Commit(ctx, hash)
}

// Status is that of the repository.
func (h *house) Status() gitsource.Status { return h.git.Status() }

// seenAt is when a commit was handed to the loop.
func (h *house) seenAt(hash string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[hash]
}

// inForce is when the commit in force came into force.
func (h *house) inForce() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.report.Source.Since
}
