package main

import (
	"context"
	"io/fs"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
)

// An instance is the loop's source: the real one, which also records when commits are detected.

// Run implements reconciler.Source.
func (h *instance) Run(ctx context.Context, head func(gitsource.Commit)) error {
	return h.git.Run(ctx, func(c gitsource.Commit) {
		h.mu.Lock()
		h.seen[c.Hash] = time.Now()
		h.mu.Unlock()
		head(c)
	})
}

// Files implements reconciler.Source.
func (h *instance) Files(ctx context.Context, commit string) (fs.FS, error) {
	return h.git.Files(ctx, commit)
}

// Commit implements reconciler.Source.
func (h *instance) Commit(ctx context.Context, hash string) (gitsource.Commit, error) {
	return h.git.Commit(ctx, hash)
}

// Status implements reconciler.Source.
func (h *instance) Status() gitsource.Status { return h.git.Status() }

// seenAt returns when a commit was passed to the loop.
func (h *instance) seenAt(hash string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[hash]
}

// inForce returns when the commit in force came into force.
func (h *instance) inForce() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.report.Source.Since
}
