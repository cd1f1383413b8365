package proposal

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// toList says which open requests are to be listed now. While both pull requests and issues are
// followed, they take turns, so that a forge on which nothing happens is asked one thing in an
// interval.
func (p *Proposer) toList(now time.Time) (pulls, issues bool) {
	since := now.Sub(p.listed)
	all := p.listed.IsZero() || p.woken && since >= min(wakeSpacing, p.cfg.Interval)
	if !all && since < p.cfg.Interval {
		return false, false
	}
	pulls = all || p.follows(isPullRequest)
	issues = p.issues.Wait(now) <= 0 && (p.listed.IsZero() || p.follows(isIssue) || p.triesIssues(now))
	if pulls && issues && !all {
		return p.listedIssues, !p.listedIssues
	}
	return pulls, issues
}

// follows reports whether something may have changed on the forge that is waited for: a pull
// request, or an issue, is open or may still keep an object as it is.
func (p *Proposer) follows(form func(branch string) bool) bool {
	for branch := range p.open {
		if form(branch) {
			return true
		}
	}
	for _, c := range p.changes {
		if form(c.branch) && (c.state == forge.Open || c.asksAgain()) {
			return true
		}
	}
	return false
}

// asksAgain reports whether a pull request that is closed may still keep an object as it
// is.
func (c *change) asksAgain() bool { return c.state == forge.Closed && (c.hold || c.recheck) }

// look lists the open pull requests, or issues, or both, and finds out what became of those that are
// open no more.
func (p *Proposer) look(ctx context.Context, now time.Time, pulls, issues bool) error {
	open := map[string]forge.PullRequest{}
	if issues {
		var err error
		if open, issues, err = p.openIssues(ctx, now); err != nil {
			return err
		}
	}
	if pulls {
		list, err := p.cfg.Forge.ListOpen(ctx, p.cfg.Base)
		if err != nil {
			return err
		}
		p.addOurs(open, list)
	}
	isListed := func(branch string) bool { return isIssue(branch) && issues || isPullRequest(branch) && pulls }
	before := p.open
	p.open, p.listed, p.listedIssues = open, now, issues && !pulls
	gone := map[string]goneRequest{}
	for branch, pr := range before {
		_, still := open[branch]
		switch {
		case still:
		case isListed(branch):
			gone[branch] = goneRequest{pr.Number, true}
		default:
			open[branch] = pr
		}
	}
	for _, c := range p.changes {
		if !isListed(c.branch) {
			continue
		}
		if pr, open := p.open[c.branch]; open {
			c.found(pr) // also one that was opened again
		} else if _, listed := gone[c.branch]; !listed && (c.state == forge.Open || c.asksAgain()) {
			gone[c.branch] = goneRequest{number: c.number}
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(gone)) {
		if err := p.lookAtEnded(ctx, branch, gone[branch]); err != nil {
			p.open, p.listed = before, time.Time{} // what has ended is found the next time
			return err
		}
	}
	return nil
}

// addOurs adds those of a list of pull requests that are of the fleet.
func (p *Proposer) addOurs(open map[string]forge.PullRequest, list []forge.PullRequest) {
	known := map[string]bool{} // the branches of known changes, whatever people made of the body
	for _, c := range p.changes {
		known[c.branch] = true
	}
	for _, pr := range list {
		if !pr.Fork && strings.HasPrefix(pr.Branch, branchPrefix) && (known[pr.Branch] || markedAs(pr.Body, p.cfg.Fleet) != "") {
			open[pr.Branch] = pr
		}
	}
}

// changeHash is the hash of the change that a pull request or an issue is about, which is in the name
// of its branch.
func changeHash(branch string) string {
	hash, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(branch, issuePrefix), branchPrefix), "-")
	return hash
}

// A goneRequest is a pull request or an issue that is not listed as open any more.
type goneRequest struct {
	number int64
	// wasOpen says that it was among the open ones, so that its branch is to be deleted.
	wasOpen bool
}

// lookAtEnded finds out what became of a pull request or an issue that is not listed as open any
// more. The branch is deleted if it is done and was open before. If there is none to this base
// any more, as when it got another one, the change is offered anew.
func (p *Proposer) lookAtEnded(ctx context.Context, branch string, gone goneRequest) error {
	pr, err := p.current(ctx, branch, gone.number)
	if err != nil {
		return err
	}
	if delete(p.missing, branch); isIssue(branch) {
		p.allIssues = nil
	}
	for _, c := range p.changes {
		switch {
		case c.branch != branch:
		case pr != nil && closedByGitfleet(pr): // the answer was lost, or another daemon did
			c.offerAnew()
		case pr != nil:
			c.found(*pr)
			c.published = nil
		case c.state == forge.Open && !c.hold, !isIssue(branch), p.disabled.IsZero(): // deleted, or of another base
			*c = change{since: c.since}
		}
	}
	if pr != nil && pr.State == forge.Open {
		p.open[branch] = *pr
	}
	if pr == nil || pr.State == forge.Open || !gone.wasOpen {
		return nil
	}
	p.cfg.Log.Info("a proposal of a drift was "+string(pr.State), "url", pr.URL)
	p.removeBranch(ctx, branch)
	return nil
}

// removeBranch deletes the branch of a pull request that is done.
func (p *Proposer) removeBranch(ctx context.Context, branch string) {
	if isIssue(branch) {
		return
	}
	if err := p.cfg.Branches.Remove(ctx, branch, trailer(changeHash(branch))); err != nil {
		p.cfg.Log.Warn("branch of a pull request that is done not deleted", "branch", branch, "err", err)
	}
}
