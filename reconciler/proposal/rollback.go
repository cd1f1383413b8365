package proposal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Content that has failed in an update run and was rolled back is offered to be undone in Git. Such an offer is a change
// without drifts: nothing on a cluster waits for the decision about it, and it is offered at once.

// collectFailed returns what undoes the failed contents of a report. The files must be those of the commit in force.
func (col *collector) collectFailed(ctx context.Context, cfg *Config, r *status.Report, files fs.FS) (offers []*change, others []notOffered) {
	if cfg.Forge == nil || cfg.Undo == nil {
		return nil, nil
	}
	used := map[string]cachedRollback{}
	for _, d := range r.Details {
		if d.FailedContent == nil {
			continue
		}
		key, err := api.ParsePlacement(d.Placement)
		if err != nil {
			continue // every placement in a report has a valid key
		}
		f := *d.FailedContent
		c := &change{hash: hashOf(cfg.Fleet, "failed content", d.Placement, f.Run, f.Commit), rollback: &rollback.Offer{Placement: key, Failed: f}}
		memo := hashOf(c.hash, r.InForce.Commit.Hash, f.BackCommit)
		done, known := col.rollbacks[memo]
		if !known {
			done = col.undo(ctx, cfg, r, files, c.rollback)
		}
		if _, impossible := errors.AsType[*rollback.ImpossibleError](done.err); done.err != nil && !impossible {
			cfg.Log.Warn("it is not known how to undo a content that has failed; trying again", "placement", d.Placement, "run", f.Run, "err", done.err)
			others = append(others, notOffered{c, Unsettled, done.err.Error(), true})
			continue
		}
		used[memo] = done
		c.files, c.reason = done.files, done.err
		c.rollback.Paths, c.rollback.Reason = done.paths, done.err
		offers = append(offers, c)
	}
	col.rollbacks = used
	return offers, others
}

// undo finds the edit that undoes a content.
func (col *collector) undo(ctx context.Context, cfg *Config, r *status.Report, files fs.FS, o *rollback.Offer) (out cachedRollback) {
	undone, err := cfg.Undo(ctx, r.InForce.Commit.Hash, o.Failed.Commit, o.Failed.BackCommit)
	if errors.Is(err, gitsource.ErrNotInHistory) || errors.Is(err, gitsource.ErrUnknownCommit) {
		return cachedRollback{err: rollback.Impossible(err)}
	}
	if err != nil {
		return cachedRollback{err: err}
	}
	tree := &rollback.Tree{Files: files, Load: col.load, Head: r.InForce, Placement: o.Placement}
	if out.paths, err = tree.Find(undone.Files, undone.Conflicts); err != nil {
		return cachedRollback{err: err}
	}
	for _, path := range out.paths {
		before, err := fs.ReadFile(files, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cachedRollback{err: fmt.Errorf("%w: %w", edit.ErrUnreadable, err)}
		}
		out.files = append(out.files, edit.FileChange{Path: path, Before: before, After: undone.Files[path]})
	}
	return out
}

// failedKey identifies the failed contents of a report.
func failedKey(r *status.Report) string {
	var b strings.Builder
	for _, d := range r.Details {
		if d.FailedContent != nil {
			fmt.Fprintln(&b, d.Placement, *d.FailedContent)
		}
	}
	return b.String()
}

// countDrift counts the pull requests and issues of drift among those that are open.
func countDrift(open map[string]thread) (n int) {
	for branch, pr := range open {
		if !isRollback(branch) && !slices.Contains(pr.Labels, rollback.Label) {
			n++
		}
	}
	return n
}

// overComment is the comment on a pull request or an issue of a change that is over.
func overComment(pr thread) string {
	if isRollback(pr.name) || slices.Contains(pr.Labels, rollback.Label) {
		return "The content of the placement is another one by now, or runs again."
	}
	return "The drift has ended: no cluster has this value any more, or Git has changed. If a cluster has another value now, that is a change of its own."
}
