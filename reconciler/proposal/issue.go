package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// A change that no edit of the files in Git can express is offered as an issue: closed, it is put
// back. Everything else about it is as with a pull request, which is why an issue is handled as
// a [forge.PullRequest] whose branch is issuePrefix and the hash of the change.

const (
	// issuePrefix is what the branch of an issue begins with. No branch of that name exists.
	issuePrefix = "issue/"
	// disabledRecheck is how long a repository without issues is not asked again whether it has
	// them by now.
	disabledRecheck = time.Hour
)

func isIssue(branch string) bool { return strings.HasPrefix(branch, issuePrefix) }

// fromIssue returns the issue of a change.
func fromIssue(i forge.Issue, hash string) forge.PullRequest {
	return forge.PullRequest{Number: i.Number, URL: i.URL, Title: i.Title, Body: i.Body, Labels: i.Labels, Branch: issuePrefix + hash, State: i.State, Ended: i.Ended}
}

// offersIssues reports whether changes without an edit can be offered.
func (p *Proposer) offersIssues(now time.Time) bool {
	return p.cfg.Forge != nil && (p.disabled.IsZero() || now.Sub(p.disabled) >= disabledRecheck)
}

// current returns the pull request of a branch, or the issue with a number; nil if there is none.
func (p *Proposer) current(ctx context.Context, branch string, number int64) (*forge.PullRequest, error) {
	if !isIssue(branch) {
		return p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
	}
	i, err := p.cfg.Forge.Issue(ctx, number)
	if errors.Is(err, forge.ErrIssuesDisabled) || err == nil && i == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := fromIssue(*i, strings.TrimPrefix(branch, issuePrefix))
	return &found, nil
}

// edit replaces the body of a pull request or an issue.
func (p *Proposer) edit(ctx context.Context, pr forge.PullRequest, body string) error {
	if isIssue(pr.Branch) {
		return p.cfg.Forge.EditIssue(ctx, pr.Number, body)
	}
	return p.cfg.Forge.EditPullRequest(ctx, pr.Number, body)
}

// end closes a pull request or an issue.
func (p *Proposer) end(ctx context.Context, pr forge.PullRequest, comment, body string) error {
	if isIssue(pr.Branch) {
		return p.cfg.Forge.CloseIssue(ctx, pr.Number, comment, body)
	}
	return p.cfg.Forge.ClosePullRequest(ctx, pr.Number, comment, body)
}

// hasIssues reports whether issues of the fleet are open or followed.
func (p *Proposer) hasIssues() bool {
	for branch := range p.open {
		if isIssue(branch) {
			return true
		}
	}
	for _, c := range p.changes {
		if isIssue(c.branch) && (c.state == forge.Open || c.asksAgain()) {
			return true
		}
	}
	return false
}

// triesIssues reports whether issues are to be listed again that could not be.
func (p *Proposer) triesIssues(now time.Time) bool {
	return p.issues.Failures() > 0 && p.issues.Wait(now) <= 0 || p.missed && p.offersIssues(now)
}

// openIssues returns the open issues of the fleet by their branches. Unless there may be some,
// or if they cannot be listed now, they are those of the last list, and listed is false. An error
// is one that every request is likely to meet.
func (p *Proposer) openIssues(ctx context.Context, now time.Time) (open map[string]forge.PullRequest, listed bool, err error) {
	open = map[string]forge.PullRequest{}
	numbers := map[int64]string{} // the known changes, whatever people made of the body
	for _, c := range p.changes {
		if isIssue(c.branch) {
			numbers[c.number] = c.branch
		}
	}
	for branch, pr := range p.open {
		if isIssue(branch) {
			open[branch] = pr
			numbers[pr.Number] = branch
		}
	}
	if p.issues.Wait(now) > 0 || !p.listed.IsZero() && !p.hasIssues() && !p.triesIssues(now) {
		return open, false, nil
	}
	list, err := p.cfg.Forge.ListIssues(ctx, issueLabel, forge.Open)
	switch {
	case errors.Is(err, forge.ErrIssuesDisabled):
		p.disabled = now
		return nil, true, nil
	case err != nil && isGeneral(err):
		return nil, false, err
	case err != nil:
		if p.issues.Fail(err, now) {
			p.cfg.Log.Warn("issues of drifts not listed; trying again", "err", err)
		}
		return open, false, nil
	}
	p.issues.Succeed()
	p.disabled, p.missed = time.Time{}, false
	clear(open)
	for _, i := range slices.Backward(list) {
		hash := markedAs(i.Body, p.cfg.Fleet)
		if branch, known := numbers[i.Number]; known {
			hash = strings.TrimPrefix(branch, issuePrefix)
		}
		first, twice := open[issuePrefix+hash]
		switch {
		case hash == "":
		case twice: // two daemons have opened one at the same time
			err := p.cfg.Forge.CloseIssue(ctx, i.Number, "The same change is in "+first.URL+".", ended(i.Body))
			if err != nil && isGeneral(err) {
				return nil, false, err
			}
			p.cfg.Log.Info("an issue of a drift is closed, since there is another one of the same change", "url", i.URL, "other", first.URL, "err", err)
		default:
			open[issuePrefix+hash] = fromIssue(i, hash)
		}
	}
	return open, true, nil
}

// offerIssue opens the issue of a change, or finds the one that is there already.
func (p *Proposer) offerIssue(ctx context.Context, o *offer, c *change, now time.Time) error {
	if p.full(c) {
		return nil
	}
	list, err := p.cfg.Forge.ListIssues(ctx, issueLabel, "")
	var found *forge.PullRequest
	for _, i := range list {
		if markedAs(i.Body, p.cfg.Fleet) != o.hash {
			continue
		}
		// One that a person has closed counts more than a newer one that gitfleet has.
		same := fromIssue(i, o.hash)
		if found == nil || same.State == forge.Open || over(found, c.since) && !over(&same, c.since) {
			found = &same
		}
	}
	if err == nil && (found == nil || over(found, c.since)) {
		found, err = p.createIssue(ctx, o)
	}
	if errors.Is(err, forge.ErrIssuesDisabled) {
		p.disabled = now
		return nil
	}
	if err != nil {
		return err
	}
	p.disabled, p.missed = time.Time{}, false
	c.found(*found)
	if found.State == forge.Open {
		p.open[found.Branch] = *found
	}
	return nil
}

func (p *Proposer) createIssue(ctx context.Context, o *offer) (*forge.PullRequest, error) {
	faults.At("before issue")
	i, err := p.cfg.Forge.OpenIssue(ctx, forge.NewIssue{Title: o.title(), Body: o.body(p.cfg.Fleet, nil), Labels: append(o.labels(), issueLabel)})
	faults.At("after issue")
	if err != nil {
		return nil, err
	}
	p.cfg.Log.Info("a drift is offered as an issue", "url", i.URL, "object", o.id.String())
	opened := fromIssue(i, o.hash)
	return &opened, nil
}

// replaceIssue closes the open issue of a change that an edit can express by now, so that it is
// offered as a pull request. One with the label that keeps the object stays.
func (p *Proposer) replaceIssue(ctx context.Context, c *change) error {
	pr, open := p.open[c.branch]
	if !open || c.hold {
		return nil
	}
	current, err := p.current(ctx, c.branch, pr.Number) // it may have been closed since the last list
	switch {
	case err != nil || current == nil:
		return err
	case current.State != forge.Open || slices.Contains(current.Labels, holdLabel):
		c.found(*current)
		if delete(p.open, c.branch); current.State == forge.Open {
			p.open[c.branch] = *current
		}
		return nil
	}
	pr = *current
	const comment = "An edit of the files in Git can express the change by now. It is offered as a pull request."
	if err := p.end(ctx, pr, comment, ended(pr.Body)); err != nil {
		return err
	}
	p.cfg.Log.Info("a drift is offered as a pull request instead of an issue", "url", pr.URL)
	delete(p.open, c.branch)
	*c = change{since: c.since, asked: c.asked}
	return nil
}

// withoutIssue is what was decided about a change that neither a pull request nor an issue
// offers.
func (p *Proposer) withoutIssue(o *offer, c *change, now time.Time) (putBack bool, message string) {
	if o.partial && now.Sub(c.manualSince) < p.cfg.MinAge {
		return false, fmt.Sprintf("left as it is until it has lasted for %s, in case other clusters have the same change: %v", p.cfg.MinAge, o.reason)
	}
	message = fmt.Sprintf("put back, since it cannot be offered as a pull request: %v", o.reason)
	if p.cfg.Forge != nil {
		p.missed = true
		message += "; nor as an issue, since issues are disabled in the repository"
	}
	return true, message
}
