package proposal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A change that no edit of the files in Git can express is offered as an issue; if the issue is
// closed, the change is reverted. Otherwise issues are handled like pull requests.

// openIssues lists the open issues of the fleet by their branches; listed is false if they cannot be
// listed now. An error is one that every request is likely to meet.
func (f *follower) openIssues(ctx context.Context, now time.Time) (open map[string]thread, listed bool, err error) {
	open = map[string]thread{}
	numbers := map[int64]string{} // the known ones, whatever people made of the body
	for _, s := range f.states {
		if s.isIssue() {
			numbers[s.Number] = s.name
		}
	}
	for branch, pr := range f.open {
		if isIssue(branch) {
			numbers[pr.Number] = branch
		}
	}
	list, err := f.tracker.cfg.Forge.ListIssues(ctx, issueLabel, forge.Open)
	switch {
	case errors.Is(err, forge.ErrIssuesDisabled):
		f.tracker.disabled = now
		return open, true, nil
	case err != nil && isGeneral(err):
		return nil, false, err
	case err != nil:
		f.tracker.issuesFailed(err, now)
		return open, false, nil
	}
	f.tracker.issues.Succeed()
	f.tracker.disabled, f.tracker.missed = time.Time{}, false
	for _, i := range slices.Backward(list) {
		hash := markedAs(i.Body, f.tracker.cfg.Fleet)
		if branch, known := numbers[i.Number]; known {
			hash = strings.TrimPrefix(branch, issuePrefix)
		}
		first, twice := open[issuePrefix+hash]
		switch {
		case hash == "":
		case twice: // two daemons have opened an issue at the same time
			err := f.tracker.end(ctx, fromIssue(i, hash), "The same change is in "+first.URL+".", markEnded(i.Body))
			if err != nil && isGeneral(err) {
				return nil, false, err
			}
			f.tracker.cfg.Log.Info("an issue of a drift is closed, since there is another one of the same change", "url", i.URL, "other", first.URL, "err", err)
		default:
			open[issuePrefix+hash] = fromIssue(i, hash)
		}
	}
	return open, true, nil
}

// hasOtherIssue reports whether a change with an open pull request may have an issue as well, since
// issues could not be listed when the pull request was opened.
func (f *follower) hasOtherIssue(c *change, s *offerState, _ time.Time) bool {
	_, open := f.open[issuePrefix+c.hash]
	return isPullRequest(s.name) && s.State == forge.Open && (open || s.issueUnknown && !s.asked)
}

// followIssue makes a change follow its issue instead of its pull request. An issue without a
// decision is replaced then.
func (f *follower) followIssue(ctx context.Context, c *change, s *offerState, now time.Time) error {
	issue, open := f.open[issuePrefix+c.hash]
	if !open {
		found, err := f.tracker.findIssueIfListed(ctx, c.hash, s, now)
		if err != nil || found == nil {
			return err
		}
		if issue = *found; issue.State == forge.Open {
			f.open[issue.name] = issue
		}
	}
	if c.reason == nil || issue.onHold() {
		s.found(issue)
	}
	return nil
}

// hasReplaceableIssue reports whether an open issue is of a change that an edit can now express. An
// issue with the hold label stays.
func (f *follower) hasReplaceableIssue(c *change, s *offerState, _ time.Time) bool {
	_, open := f.open[s.name]
	return c.reason == nil && s.isIssue() && s.State == forge.Open && open && !s.onHold()
}

// replaceIssue closes the issue of a change, so that it is offered as a pull request.
func (f *follower) replaceIssue(ctx context.Context, _ *change, s *offerState, _ time.Time) error {
	current, err := f.tracker.current(ctx, s.thread) // it may have been closed since the last list
	switch {
	case err != nil || current == nil:
		return err
	case closedByGitfleet(current):
		delete(f.open, s.name)
		s.offerAnew()
		return nil
	case current.State != forge.Open || current.onHold():
		s.found(*current)
		if delete(f.open, s.name); current.State == forge.Open {
			f.open[s.name] = *current
		}
		return nil
	}
	const comment = "An edit of the files in Git can express the change by now. It is offered as a pull request."
	if err := f.tracker.end(ctx, *current, comment, markEnded(current.Body)); err != nil {
		return err
	}
	f.tracker.cfg.Log.Info("a drift is offered as a pull request instead of an issue", "url", current.URL)
	delete(f.open, s.name)
	s.offerAnew()
	return nil
}
