package proposal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// sync looks what became of the pull requests, closes those whose drift is over, and
// opens those that are due. It asks the forge nothing if there is nothing to ask.
func (p *Proposer) sync(ctx context.Context, now time.Time) error {
	if p.listed.IsZero() || now.Sub(p.listed) >= p.cfg.Interval && (len(p.open) > 0 || p.pending()) {
		if err := p.look(ctx, now); err != nil {
			return err
		}
	}
	if err := p.closeEnded(ctx, now); err != nil {
		return err
	}
	for _, o := range p.offersByAge() {
		c := p.changes[o.hash]
		switch {
		case c.branch != "" && c.state == forge.Open:
			if err := p.update(ctx, o, c); err != nil {
				return err
			}
		case c.branch != "" || now.Sub(c.since) < p.cfg.MinAge:
		default:
			if err := p.offer(ctx, o, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// pending reports whether something may have changed on the forge that is waited for.
func (p *Proposer) pending() bool {
	for _, c := range p.changes {
		if c.branch != "" && c.state == forge.Open {
			return true
		}
	}
	return false
}

// look lists the open pull requests, and finds out what became of those that are open no
// more.
func (p *Proposer) look(ctx context.Context, now time.Time) error {
	list, err := p.cfg.Forge.ListOpen(ctx, p.cfg.Base)
	if err != nil {
		return err
	}
	before := p.open
	p.open, p.listed = map[string]forge.PullRequest{}, now
	for _, pr := range list {
		if !pr.Fork && strings.HasPrefix(pr.Branch, branchPrefix) && markedAs(pr.Body, p.cfg.Fleet) != "" {
			p.open[pr.Branch] = pr
		}
	}
	for _, c := range p.changes {
		if pr, open := p.open[c.branch]; open {
			c.state, c.url = pr.State, pr.URL // also one that was opened again
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(before)) {
		if _, still := p.open[branch]; still {
			continue
		}
		pr, err := p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
		if err != nil {
			p.open, p.listed = before, time.Time{} // what has ended is found the next time
			return err
		}
		delete(p.missing, branch)
		if pr == nil || pr.State == forge.Open {
			continue
		}
		p.cfg.Log.Info("a pull request of a drift was "+string(pr.State), "url", pr.URL)
		for _, c := range p.changes {
			if c.branch == branch {
				c.state, c.url = pr.State, pr.URL
			}
		}
		if err := p.cfg.Forge.DeleteBranch(ctx, branch); err != nil {
			p.cfg.Log.Warn("branch of a pull request that is done not deleted", "branch", branch, "err", err)
		}
	}
	return nil
}

// closeEnded closes the pull requests whose drift is over.
func (p *Proposer) closeEnded(ctx context.Context, now time.Time) error {
	for _, branch := range slices.Sorted(maps.Keys(p.open)) {
		pr := p.open[branch]
		if p.changes[markedAs(pr.Body, p.cfg.Fleet)] != nil {
			delete(p.missing, branch)
			continue
		}
		since, known := p.missing[branch]
		if !known {
			p.missing[branch] = now
			continue
		}
		if now.Sub(since) < recoveryGrace {
			continue
		}
		const comment = "The drift is over: no cluster has the change any more, or Git has another value by now. There is nothing left to decide."
		current, err := p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
		if err != nil {
			return err
		}
		if current != nil && current.State == forge.Open {
			if err := p.cfg.Forge.ClosePullRequest(ctx, pr.Number, comment, strings.TrimSpace(pr.Body)+"\n"+endedMarker+"\n"); err != nil {
				return err
			}
			p.cfg.Log.Info("a drift is over; its pull request is closed", "url", pr.URL)
			if err := p.cfg.Forge.DeleteBranch(ctx, branch); err != nil {
				return err
			}
		}
		delete(p.open, branch)
		delete(p.missing, branch)
	}
	return nil
}

// mostAttempts bounds how often one and the same change is offered anew after it was
// over.
const mostAttempts = 100

// offer opens the pull request of a change, or finds the one that is there already.
func (p *Proposer) offer(ctx context.Context, o *offer, c *change) error {
	for attempt := 1; attempt <= mostAttempts; attempt++ {
		branch := branchPrefix + o.hash
		if attempt > 1 {
			branch += fmt.Sprintf("-%d", attempt)
		}
		pr, there := p.open[branch]
		if !there {
			if len(p.open) >= p.cfg.MaxOpen {
				c.waits = fmt.Sprintf("%d pull requests of drifts are open already, and no more are opened at once", len(p.open))
				return nil
			}
			found, err := p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
			if err != nil {
				return err
			}
			switch {
			case found == nil:
				if pr, err = p.create(ctx, o, branch); errors.Is(err, forge.ErrStale) {
					c.waits = "its file has changed in Git since; offered once that commit is in force"
					return nil
				}
				if err != nil {
					return err
				}
			case over(found, c.since):
				continue
			default:
				pr = *found
			}
		}
		c.branch, c.state, c.url, c.waits = branch, pr.State, pr.URL, ""
		if pr.State == forge.Open {
			p.open[branch] = pr
		}
		return nil
	}
	c.waits = "the same change was offered too often"
	return nil
}

// over reports whether a pull request was about an earlier time at which the object was
// changed in the same way.
func over(pr *forge.PullRequest, since time.Time) bool {
	switch pr.State {
	case forge.Merged:
		return pr.Ended.Before(since)
	case forge.Closed:
		return endedByGitfleet(pr.Body)
	}
	return false
}

// create makes the branch and the pull request of a change. Whatever of that is there
// already, because gitfleet was killed or another daemon was faster, is not made again.
func (p *Proposer) create(ctx context.Context, o *offer, branch string) (forge.PullRequest, error) {
	there, err := p.cfg.Forge.HasBranch(ctx, branch)
	if err == nil && !there {
		faults.At("before branch")
		file := o.changes[0] // an edit of a plain manifest changes one file
		err = p.cfg.Forge.Commit(ctx, forge.Commit{
			Base: p.cfg.Base, Branch: branch, Path: file.Path, Before: file.Before, After: file.After, Message: o.message(),
		})
		faults.At("after branch")
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	pr, err := p.cfg.Forge.OpenPullRequest(ctx, forge.Proposal{Base: p.cfg.Base, Branch: branch, Title: o.title(), Body: o.body(p.cfg.Fleet)})
	faults.At("after pull request")
	if err != nil {
		return forge.PullRequest{}, err
	}
	p.cfg.Log.Info("a drift is offered as a pull request", "url", pr.URL, "object", o.id.String())
	return pr, nil
}

// sameText reports whether two bodies differ in nothing but what a forge changes.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(b)
}

// update brings the body of an open pull request up to date.
func (p *Proposer) update(ctx context.Context, o *offer, c *change) error {
	pr, there := p.open[c.branch]
	body := o.body(p.cfg.Fleet)
	if !there || sameText(pr.Body, body) {
		return nil
	}
	if err := p.cfg.Forge.EditPullRequest(ctx, pr.Number, body); err != nil {
		return err
	}
	pr.Body = body
	p.open[c.branch] = pr
	return nil
}
