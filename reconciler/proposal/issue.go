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

// A change that no edit of the files in Git can express is offered as an issue; if the issue is
// closed, the change is reverted. Otherwise issues are handled like pull requests: an issue
// becomes a [forge.PullRequest] whose branch is issuePrefix followed by the hash of the change.

const (
	// issuePrefix is the prefix of the branch names of issues. Such branches do not exist.
	issuePrefix = "issue/"
	// disabledRecheck is the time between two checks whether a repository without issues has
	// enabled them.
	disabledRecheck = time.Hour
)

func isIssue(branch string) bool { return strings.HasPrefix(branch, issuePrefix) }

func isPullRequest(branch string) bool { return strings.HasPrefix(branch, branchPrefix) }

// IsIssueOfDrift reports whether a webhook may be about an issue that a Proposer has opened.
func IsIssueOfDrift(labels []string, body string) bool {
	return slices.Contains(labels, issueLabel) || marked.MatchString(body)
}

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
		p.allIssues = nil
		return p.cfg.Forge.CloseIssue(ctx, pr.Number, comment, body)
	}
	return p.cfg.Forge.ClosePullRequest(ctx, pr.Number, comment, body)
}

// triesIssues reports whether issues are to be listed again that could not be.
func (p *Proposer) triesIssues(now time.Time) bool {
	return p.issues.Failures() > 0 && p.issues.Wait(now) <= 0 || p.missed && p.offersIssues(now)
}

// openIssues lists the open issues of the fleet by their branches; listed is false if they cannot be
// listed now. An error is one that every request is likely to meet.
func (p *Proposer) openIssues(ctx context.Context, now time.Time) (open map[string]forge.PullRequest, listed bool, err error) {
	open = map[string]forge.PullRequest{}
	numbers := map[int64]string{} // the known ones, whatever people made of the body
	for _, c := range p.changes {
		if isIssue(c.branch) {
			numbers[c.number] = c.branch
		}
	}
	for branch, pr := range p.open {
		if isIssue(branch) {
			numbers[pr.Number] = branch
		}
	}
	list, err := p.cfg.Forge.ListIssues(ctx, issueLabel, forge.Open)
	switch {
	case errors.Is(err, forge.ErrIssuesDisabled):
		p.disabled = now
		return open, true, nil
	case err != nil && isGeneral(err):
		return nil, false, err
	case err != nil:
		p.issuesFailed(err, now)
		return open, false, nil
	}
	p.issues.Succeed()
	p.disabled, p.missed = time.Time{}, false
	for _, i := range slices.Backward(list) {
		hash := markedAs(i.Body, p.cfg.Fleet)
		if branch, known := numbers[i.Number]; known {
			hash = strings.TrimPrefix(branch, issuePrefix)
		}
		first, twice := open[issuePrefix+hash]
		switch {
		case hash == "":
		case twice: // two daemons have opened an issue at the same time
			err := p.end(ctx, fromIssue(i, hash), "The same change is in "+first.URL+".", ended(i.Body))
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

// issuesFailed notes that issues cannot be listed.
func (p *Proposer) issuesFailed(err error, now time.Time) {
	if p.issues.Fail(err, now) {
		p.cfg.Log.Warn("issues of drifts not listed; trying again", "err", err)
	}
}

// withoutIssues returns an error of offering a change, unless that is that the repository has no
// issues.
func (p *Proposer) withoutIssues(err error, now time.Time) error {
	if errors.Is(err, forge.ErrIssuesDisabled) {
		p.disabled = now
		return nil
	}
	return err
}

// findIssue returns the issue of a change that still counts; nil if there is none. The issues are
// listed once in an interval: a burst of changes is due over many passes.
func (p *Proposer) findIssue(ctx context.Context, hash string, since, now time.Time) (found *forge.PullRequest, err error) {
	if p.allIssues == nil {
		p.allIssues = &issueList{at: now}
		p.allIssues.list, p.allIssues.err = p.cfg.Forge.ListIssues(ctx, issueLabel, "")
	}
	for _, i := range p.allIssues.list {
		if markedAs(i.Body, p.cfg.Fleet) != hash {
			continue
		}
		// One that a person has closed counts more than a newer one that gitfleet has.
		same := fromIssue(i, hash)
		if found == nil || same.State == forge.Open || over(found, since) && !over(&same, since) {
			found = &same
		}
	}
	if found != nil && over(found, since) {
		found = nil
	}
	return found, p.allIssues.err
}

// findIssueIfListed is findIssue for a change that can be offered without issues. While they cannot
// be listed it finds none, and the change is marked.
func (p *Proposer) findIssueIfListed(ctx context.Context, hash string, c *change, now time.Time) (*forge.PullRequest, error) {
	c.issueUnknown = true
	if p.issues.Wait(now) > 0 || !p.offersIssues(now) {
		return nil, nil
	}
	found, err := p.findIssue(ctx, hash, c.since, now)
	c.issueUnknown = err != nil
	if err = p.withoutIssues(err, now); err != nil && !isGeneral(err) {
		p.issuesFailed(err, now)
		err = nil
	}
	return found, err
}

// hasOtherIssue reports whether a change with an open pull request may have an issue as well, since
// issues could not be listed when the pull request was opened.
func (p *Proposer) hasOtherIssue(o *offer, c *change, _ time.Time) bool {
	_, open := p.open[issuePrefix+o.hash]
	return isPullRequest(c.branch) && c.state == forge.Open && (open || c.issueUnknown && !c.asked)
}

// followIssue makes a change follow its issue instead of its pull request. An issue without a
// decision is replaced then.
func (p *Proposer) followIssue(ctx context.Context, o *offer, c *change, now time.Time) error {
	issue, open := p.open[issuePrefix+o.hash]
	if !open {
		found, err := p.findIssueIfListed(ctx, o.hash, c, now)
		if err != nil || found == nil {
			return err
		}
		if issue = *found; issue.State == forge.Open {
			p.open[issue.Branch] = issue
		}
	}
	if o.reason == nil || slices.Contains(issue.Labels, holdLabel) {
		c.found(issue)
	}
	return nil
}

// An issueList is what listing issues came to at a time.
type issueList struct {
	at   time.Time
	list []forge.Issue
	err  error
}

func (p *Proposer) createIssue(ctx context.Context, o *offer) (*forge.PullRequest, error) {
	faults.At("before issue")
	i, err := p.cfg.Forge.OpenIssue(ctx, forge.NewIssue{Title: o.title(), Body: o.body(p.cfg.Fleet, nil), Labels: append(o.labels(), issueLabel)})
	faults.At("after issue")
	if err != nil {
		p.allIssues = nil // only the answer may be lost
		return nil, err
	}
	p.disabled, p.missed = time.Time{}, false
	if p.allIssues != nil {
		p.allIssues.list = append(p.allIssues.list, i)
	}
	p.cfg.Log.Info("a drift is offered as an issue", "url", i.URL, "object", o.id.String())
	opened := fromIssue(i, o.hash)
	return &opened, nil
}

// hasNeedlessIssue reports whether an open issue is of a change that an edit can now express. An
// issue with the hold label stays.
func (p *Proposer) hasNeedlessIssue(o *offer, c *change, _ time.Time) bool {
	_, open := p.open[c.branch]
	return o.reason == nil && isIssue(c.branch) && c.state == forge.Open && open && !c.hold
}

// replaceIssue closes the issue of a change, so that it is offered as a pull request.
func (p *Proposer) replaceIssue(ctx context.Context, _ *offer, c *change, _ time.Time) error {
	current, err := p.current(ctx, c.branch, c.number) // it may have been closed since the last list
	switch {
	case err != nil || current == nil:
		return err
	case closedByGitfleet(current):
		delete(p.open, c.branch)
		c.offerAnew()
		return nil
	case current.State != forge.Open || slices.Contains(current.Labels, holdLabel):
		c.found(*current)
		if delete(p.open, c.branch); current.State == forge.Open {
			p.open[c.branch] = *current
		}
		return nil
	}
	const comment = "An edit of the files in Git can express the change by now. It is offered as a pull request."
	if err := p.end(ctx, *current, comment, ended(current.Body)); err != nil {
		return err
	}
	p.cfg.Log.Info("a drift is offered as a pull request instead of an issue", "url", current.URL)
	delete(p.open, c.branch)
	c.offerAnew()
	return nil
}

// withoutIssue returns the decision about a change that is offered neither as a pull request
// nor as an issue.
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
