package review

import (
	"context"
	"path"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
)

// writePlan writes a plan. With asking, trials are still running: then the status is pending, and
// a comment that already has the plan is not changed until they have finished.
func (v *Reviewer) writePlan(ctx context.Context, r *review, result *Result, key string, asking bool) error {
	var existing *forge.Comment
	if !openedByGitfleet(r.pr) {
		var err error
		if existing, err = v.cfg.Forge.FindComment(ctx, r.pr.Number, marker(v.cfg.Fleet)); err != nil {
			return err
		}
	}
	if asking && existing != nil && strings.Contains(existing.Body, keyMarker(key)) {
		r.planned(key)
		return nil
	}
	state, text := result.Status()
	if asking {
		state, text = forge.StatusPending, text+"; asking members"
	}
	if err := v.setPlanStatus(ctx, r, state, text); err != nil {
		return err
	}
	if !openedByGitfleet(r.pr) {
		written := writtenProblems(existing)
		var linesErr error // returned only once the plan is written
		if !asking {
			written, linesErr = v.commentOnLines(ctx, r, result, written)
		}
		body := result.body(subject{fleet: v.cfg.Fleet, branch: v.cfg.Base, base: v.tip, head: r.pr.Head, number: r.pr.Number, fork: r.pr.Fork, key: key, lineURL: v.cfg.Forge.LineURL, asking: asking, written: written})
		if err := v.writeComment(ctx, r.pr.Number, existing, body); err != nil {
			return err
		}
		if linesErr != nil {
			return linesErr
		}
	}
	r.planned(key)
	v.cfg.Log.Info("pull request planned", "url", r.pr.URL, "commit", r.pr.Head, "status", r.shown.Description)
	return nil
}

// writeComment creates the comment of the fleet, or replaces the text of the existing one. If another
// daemon has created one at the same time, the first of the two is kept.
func (v *Reviewer) writeComment(ctx context.Context, number int64, existing *forge.Comment, body string) error {
	if existing != nil {
		if strings.TrimSpace(existing.Body) == strings.TrimSpace(body) {
			return nil
		}
		return v.cfg.Forge.EditComment(ctx, number, existing.ID, body)
	}
	made, err := v.cfg.Forge.AddComment(ctx, number, body)
	if err != nil {
		return err
	}
	first, err := v.cfg.Forge.FindComment(ctx, number, marker(v.cfg.Fleet))
	if err != nil || first == nil || first.ID == made.ID {
		return err
	}
	if err := v.cfg.Forge.EditComment(ctx, number, made.ID, "The plan is in the comment above.\n"); err != nil {
		return err
	}
	return v.cfg.Forge.EditComment(ctx, number, first.ID, body)
}

// statusName is the name of a commit status.
func (c *Config) statusName(what string) string {
	return path.Join("gitfleet", c.StatusFleet, what)
}

// setPlanStatus sets the commit status of a pull request.
func (v *Reviewer) setPlanStatus(ctx context.Context, r *review, state forge.StatusState, text string) error {
	s := forge.Status{Commit: r.pr.Head, Context: v.cfg.statusName("plan"), State: state, Description: shortened(markdown.Plain(text)), URL: r.pr.URL}
	return v.cfg.setStatus(ctx, &r.shown, s)
}

// setStatus sets a commit status if it differs from the last one.
func (c *Config) setStatus(ctx context.Context, last *forge.Status, s forge.Status) error {
	if s == *last {
		return nil
	}
	if err := c.Forge.SetStatus(ctx, s); err != nil {
		return err
	}
	*last = s
	return nil
}
