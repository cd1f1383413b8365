package review

import (
	"context"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// publish writes a plan. With asking the members are yet to answer: then the status is pending,
// and a comment that has the plan already is left until they have.
func (v *Reviewer) publish(ctx context.Context, r *review, result *Result, key string, asking bool) error {
	var existing *forge.Comment
	if !own(r.pr) {
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
	if err := v.show(ctx, r, state, text); err != nil {
		return err
	}
	if !own(r.pr) {
		body := result.body(subject{fleet: v.cfg.Fleet, branch: v.cfg.Base, base: v.tip, head: r.pr.Head, number: r.pr.Number, key: key, lineURL: v.cfg.Forge.LineURL, asking: asking})
		if err := v.write(ctx, r.pr.Number, existing, body); err != nil {
			return err
		}
	}
	r.planned(key)
	v.cfg.Log.Info("pull request planned", "url", r.pr.URL, "commit", r.pr.Head, "status", r.shown.Description)
	return nil
}

// write makes the comment of the fleet, or replaces the text of one that is there. If another
// daemon made one at the same time, the first of the two stays.
func (v *Reviewer) write(ctx context.Context, number int64, existing *forge.Comment, body string) error {
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
