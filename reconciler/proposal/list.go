package proposal

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
)

// dueLists says whether the open pull requests and the open issues are to be listed now. While both are
// followed, they take turns, so that a forge on which nothing happens is asked one thing in an interval.
func (f *follower) dueLists(now time.Time) (pulls, issues bool) {
	since := now.Sub(f.listed)
	all := f.listed.IsZero() || f.woken && since >= min(poll.Spacing, f.tracker.cfg.Interval)
	if !all && since < f.tracker.cfg.Interval {
		return false, false
	}
	pulls = all || f.follows(isPullRequest)
	issues = f.tracker.issues.Wait(now) <= 0 && (f.listed.IsZero() || f.follows(isIssue) || f.tracker.triesIssues(now))
	if pulls && issues && !all {
		return f.listedIssues, !f.listedIssues
	}
	return pulls, issues
}

// follows reports whether the forge has to be asked again about pull requests or issues: one of them is open, is closed and may
// still keep an object as it is, or has expired and may be opened again.
func (f *follower) follows(form func(branch string) bool) bool {
	for branch := range f.open {
		if form(branch) {
			return true
		}
	}
	for _, s := range f.states {
		if form(s.name) && (s.State == forge.Open || s.expired() || s.asksAgain()) {
			return true
		}
	}
	return false
}

// list lists the open pull requests, or issues, or both, and finds out what became of those that are
// open no more.
func (f *follower) list(ctx context.Context, now time.Time, pulls, issues bool) error {
	open := map[string]thread{}
	if issues {
		var err error
		if open, issues, err = f.openIssues(ctx, now); err != nil {
			return err
		}
	}
	if pulls {
		list, err := f.tracker.cfg.Forge.ListOpen(ctx, f.tracker.cfg.Base)
		if err != nil {
			return err
		}
		f.addOurs(open, list)
	}
	isListed := func(branch string) bool { return isIssue(branch) && issues || isPullRequest(branch) && pulls }
	before := f.open
	f.open, f.listed, f.listedIssues = open, now, issues && !pulls
	clear(f.free)
	gone := map[string]goneProposal{}
	for branch, pr := range before {
		_, still := open[branch]
		switch {
		case still:
		case isListed(branch):
			gone[branch] = goneProposal{pr, true}
		default:
			open[branch] = pr
		}
	}
	for _, s := range f.states {
		if !isListed(s.name) {
			continue
		}
		if pr, open := f.open[s.name]; open {
			s.found(pr) // also one that was opened again
		} else if _, listed := gone[s.name]; !listed && (s.State == forge.Open || s.asksAgain()) {
			gone[s.name] = goneProposal{thread: s.thread}
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(gone)) {
		if err := f.followEnded(ctx, gone[branch]); err != nil {
			f.open, f.listed = before, time.Time{} // what has ended is found the next time
			return err
		}
	}
	return nil
}

// addOurs adds those of a list of pull requests that are of the fleet.
func (f *follower) addOurs(open map[string]thread, list []forge.PullRequest) {
	known := map[string]bool{} // the branches of known changes, whatever people made of the body
	for _, s := range f.states {
		known[s.name] = true
	}
	for _, pr := range list {
		if !pr.Fork && isPullRequest(pr.Branch) && (known[pr.Branch] || markedAs(pr.Body, f.tracker.cfg.Fleet) != "") {
			open[pr.Branch] = thread{pr.Thread, pr.Branch, pr.MergeCommit}
		}
	}
}

// A goneProposal is a pull request or an issue that is not listed as open any more.
type goneProposal struct {
	thread
	// wasOpen says that it was among the open ones, so that its branch is to be deleted.
	wasOpen bool
}

// followEnded finds out what became of a pull request or an issue that is not listed as open any
// more. The branch is deleted if it is done and was open before. If there is none to this base
// any more, as when it got another one, the change is offered anew.
func (f *follower) followEnded(ctx context.Context, gone goneProposal) error {
	pr, err := f.tracker.current(ctx, gone.thread)
	if err != nil {
		return err
	}
	branch := gone.name
	delete(f.missing, branch)
	delete(f.ending, branch)
	delete(f.written, branch)
	delete(f.ended, branch)
	if gone.isIssue() {
		f.tracker.allIssues = nil
	}
	for hash, s := range f.states {
		switch {
		case s.name != branch:
		case pr != nil && closedByGitfleet(pr): // the answer was lost, or another daemon did
			s.offerAnew()
		case pr != nil && pr.State != forge.Open && !stillOffers(pr, hash): // it had not got the change yet
			s.offerAnew()
		case pr != nil:
			s.found(*pr)
		case s.State == forge.Open && !s.onHold(), !gone.isIssue(), f.tracker.disabled.IsZero(): // deleted, or of another base
			*s = offerState{since: s.since}
		}
	}
	if pr != nil && pr.State == forge.Open {
		f.open[branch] = *pr
	}
	if pr == nil || pr.State == forge.Open || !gone.wasOpen {
		return nil
	}
	f.tracker.cfg.Log.Info("a proposal of a drift was "+string(pr.State), "url", pr.URL)
	f.removeBranch(ctx, branch)
	return nil
}

// removeBranch deletes the branch of a pull request that is done.
func (f *follower) removeBranch(ctx context.Context, branch string) {
	if isIssue(branch) {
		return
	}
	if err := f.tracker.cfg.Branches.Remove(ctx, branch, trailer(branch)); err != nil {
		f.tracker.cfg.Log.Warn("branch of a pull request that is done not deleted", "branch", branch, "err", err)
	}
}

// maxLeftovers bounds the branches of which the forge is asked in one interval.
const maxLeftovers = 10

// removeLeftovers deletes the branches of pull requests of the fleet that have ended while gitfleet
// was not running. A branch without a pull request stays: its change may be about to be offered. It
// returns only errors that every request is likely to meet.
func (f *follower) removeLeftovers(ctx context.Context, now time.Time) error {
	if now.Sub(f.leftoversAt) < f.tracker.cfg.Interval || f.leftoverRetry.Wait(now) > 0 {
		return nil
	}
	f.leftoversAt = now
	switch err := f.tryLeftovers(ctx); {
	case err == nil:
		f.leftoverRetry.Succeed()
	case isGeneral(err):
		return err
	case f.leftoverRetry.Fail(err, now):
		f.tracker.cfg.Log.Warn("branches of earlier pull requests not deleted; trying again", "err", err)
	}
	return nil
}

func (f *follower) tryLeftovers(ctx context.Context) error {
	if f.leftovers == nil {
		branches, err := f.tracker.cfg.Branches.List(ctx, ownPrefix)
		if err != nil {
			return err
		}
		f.leftovers = slices.DeleteFunc(append([]string{}, branches...), func(branch string) bool { return !isPullRequest(branch) })
	}
	for range min(len(f.leftovers), maxLeftovers) {
		branch := f.leftovers[0]
		if _, open := f.open[branch]; !open {
			pr, err := f.tracker.find(ctx, branch)
			if err != nil {
				return err
			}
			if pr != nil && pr.State != forge.Open && markedAs(pr.Body, f.tracker.cfg.Fleet) != "" {
				f.removeBranch(ctx, branch)
			}
		}
		f.leftovers = f.leftovers[1:]
	}
	return nil
}
