package review

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A Preview is the whole plan of a pull request; a comment may show only a part of it.
type Preview struct {
	// Base and Head are the two commits that would be merged.
	Base, Head string
	*Result
}

// A previewRequest asks Run for a preview.
type previewRequest struct {
	ctx    context.Context
	number int64
	answer chan<- previewAnswer
}

type previewAnswer struct {
	preview *Preview
	// asks says that trials are run for the plan, which was requested by a user.
	asks bool
	err  error
}

// Preview plans a pull request now, and writes nothing to the forge. Any goroutine may call it
// while Run is running.
func (v *Reviewer) Preview(ctx context.Context, number int64) (*Preview, error) {
	answer := make(chan previewAnswer, 1)
	select {
	case v.previews <- previewRequest{ctx, number, answer}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-answer:
		if a.asks {
			a.preview.Answers, a.err = v.askForPreview(ctx, a.preview.Result)
		}
		return a.preview, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askForPreview runs the trials of a plan, concurrently with Run.
func (v *Reviewer) askForPreview(ctx context.Context, r *Result) (*Answers, error) {
	select {
	case v.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.slots }()
	return v.runTrials(ctx, r), nil
}

// preview handles a request. It ends when Run does, or when the context of the request is done.
func (v *Reviewer) preview(ctx context.Context, q previewRequest) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)()
	p, asks, err := v.previewOf(ctx, q.number)
	q.answer <- previewAnswer{p, asks, err}
}

// previewOf returns the plan of a pull request, and whether trials are run for it.
func (v *Reviewer) previewOf(ctx context.Context, number int64) (p *Preview, asks bool, err error) {
	if !v.ready() {
		return nil, false, errors.New("nothing is planned yet: the daemon is starting")
	}
	pr, err := v.cfg.Forge.PullRequest(ctx, number)
	switch {
	case err != nil:
		return nil, false, err
	case pr.State != forge.Open:
		return nil, false, fmt.Errorf("pull request %d is %s", number, pr.State)
	case pr.Base != v.cfg.Base:
		return nil, false, fmt.Errorf("pull request %d is to the branch %s; only pull requests to %s are planned", number, pr.Base, v.cfg.Base)
	case pr.Fork && v.refusesFork(pr) != "":
		return nil, false, fmt.Errorf("pull request %d is from a fork, and %s", number, v.refusesFork(pr))
	}
	v.updateFleet(time.Now())
	r, err := v.result(ctx, pr)
	if err != nil {
		return nil, false, err
	}
	return &Preview{Base: v.tip, Head: pr.Head, Result: r}, v.runsTrials(pr.Fork, r), nil
}
