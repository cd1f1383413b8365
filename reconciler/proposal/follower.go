package proposal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/proposal/edit"
)

// A follower offers the held changes, and follows what becomes of their pull requests and issues.
type follower struct {
	tracker tracker
	grouper
	known  collected
	states map[string]*offerState
	// open are the open pull requests and issues of the fleet as last listed, by branch.
	open   map[string]thread
	listed time.Time
	// listedIssues says that only issues were listed last.
	listedIssues bool
	// woken requests a new list before the interval is over.
	woken bool
	// leftovers are the branches that may be left over from earlier; nil until they are listed.
	// leftoversAt is the time at which the forge was last asked about some.
	leftovers     []string
	leftoversAt   time.Time
	leftoverRetry poll.Backoff
	// missing has the time since when an open pull request has had no drift, by branch.
	missing map[string]time.Time
	// ending has the backoff of pull requests and issues that are to be closed and could not be, by branch.
	ending map[string]*poll.Backoff
	// rejected are the changes whose pull request was closed without being merged, by hash.
	rejected map[string]*offerState
	// written is what the open pull requests have, by branch.
	written map[string]written
	// putBack are the users who asked to revert a change that has no pull request, by hash.
	putBack map[string]string
	// waitingList are the changes that the newest pull request lists as waiting, since
	// waitingListed.
	waitingList   []*change
	waitingListed time.Time
}

// written is what gitfleet knows a pull request to have.
type written struct {
	// files are those that the branch was last found to have, and message is that of its commit.
	files   []edit.FileChange
	message string
	// reviewers are those of the pull request for the commit and the files in reviewersOf.
	reviewers   []string
	reviewersOf string
}

// An offerState is how far the offer of a change is, kept while the drift lasts.
type offerState struct {
	since time.Time
	// thread offers the change. It is zero until the forge was asked about the change.
	thread
	// lacksMerge is the commit in force that was last found not to have the merge in its history.
	lacksMerge string
	// asked says that a user requested the pull request without the minimum age. askedBy is that
	// user, and is empty again once the pull request is open.
	asked   bool
	askedBy string
	// neverOffered is set once the forge was asked about the change and had neither a pull request
	// nor an issue of it that counts.
	neverOffered bool
	// issueUnknown is set while it is not known whether an issue has offered the change before,
	// since issues cannot be listed.
	issueUnknown bool
	// manualSince is the time since when no edit of the files has been able to express the
	// change; zero if one can.
	manualSince time.Time
	// recheck requests one more query about a pull request or issue that is closed.
	recheck bool
	// waits is the reason why no pull request was opened yet.
	waits string
	// retry is the backoff of a change whose pull request could not be opened or updated.
	retry poll.Backoff
}

// due is the time at which the change has lasted long enough for a pull request.
func (s *offerState) due(minAge time.Duration) time.Time {
	if s.manualSince.After(s.since) {
		return s.manualSince.Add(minAge)
	}
	return s.since.Add(minAge)
}

// found records the state of the pull request or issue on the forge.
func (s *offerState) found(pr thread) { s.thread, s.waits, s.recheck = pr, "", false }

// offerAnew makes the change be offered again after gitfleet has closed its pull request or issue.
func (s *offerState) offerAnew() { *s = offerState{since: s.since, asked: s.asked, askedBy: s.askedBy} }

// track records the time since when each change has lasted.
func (f *follower) track(now time.Time) {
	last := f.states
	f.states = map[string]*offerState{}
	keep := func(hash string) {
		s := cmp.Or(f.states[hash], last[hash])
		if s == nil && f.rejected[hash] != nil {
			s = f.rejected[hash]
			s.recheck = true // it may have been labeled or reopened since
		}
		if s == nil {
			s = &offerState{since: now}
		}
		f.states[hash] = s
	}
	for _, c := range f.known.offers {
		keep(c.hash)
		switch s := f.states[c.hash]; {
		case c.reason == nil:
			s.manualSince = time.Time{}
		case s.manualSince.IsZero():
			s.manualSince = now
		}
	}
	for _, n := range f.known.notOffered {
		if s := last[n.change.hash]; s != nil && s.keepsObject() {
			keep(n.change.hash)
		}
	}
	all := f.known.all()
	maps.DeleteFunc(f.putBack, func(hash, _ string) bool {
		return !slices.ContainsFunc(all, func(c *change) bool { return c.hash == hash })
	})
	for hash := range f.known.undecided() {
		s := last[hash]
		if pr := f.findOpen(hash); s == nil && pr != nil { // opened before a restart
			s = &offerState{since: now}
			s.found(*pr)
		}
		if s != nil {
			f.states[hash] = s
		}
	}
	for hash, s := range last {
		if s.State == forge.Closed && f.states[hash] == nil && len(f.rejected) < mostRejected {
			if f.rejected[hash] = s; !s.expired() {
				s.Body = "" // it may be long
			}
		}
	}
}

// changesByAge are the changes that are offered or will be, the oldest first.
func (f *follower) changesByAge() []*change {
	return slices.SortedStableFunc(slices.Values(f.known.offers), func(a, b *change) int {
		// After a restart all have been followed for the same time.
		return cmp.Or(f.states[a.hash].since.Compare(f.states[b.hash].since), a.first().Compare(b.first()))
	})
}

// sync reads the state of the pull requests and issues, closes those whose drift has ended, and
// opens those that are due. It sends no request if nothing is to be done. Only errors that
// every request is likely to meet are returned; others are recorded with their change.
func (f *follower) sync(ctx context.Context, now time.Time) error {
	if f.woken || f.tracker.allIssues != nil && (f.tracker.allIssues.err != nil || now.Sub(f.tracker.allIssues.at) >= f.tracker.cfg.Interval) {
		f.tracker.allIssues = nil
	}
	if pulls, issues := f.dueLists(now); pulls || issues {
		if f.woken {
			f.tracker.cfg.Forge.ForgetList()
		}
		f.woken = false
		if err := f.list(ctx, now, pulls, issues); err != nil {
			return err
		}
	}
	if err := f.closeEnded(ctx, now); err != nil {
		return err
	}
	changes := f.changesByAge()
	beginPass(f)
	for _, step := range steps {
		for _, c := range changes {
			s := f.states[c.hash]
			if s.retry.Wait(now) > 0 || !step.due(f, c, s, now) {
				continue
			}
			err := step.do(f, ctx, c, s, now)
			switch {
			case err == nil:
				s.retry.Succeed()
			case isGeneral(err):
				return err
			case s.retry.Fail(err, now):
				f.tracker.cfg.Log.Warn("a drift is not offered on the forge; trying again", "url", s.URL, "err", err)
			}
		}
	}
	for _, c := range changes {
		if s := f.states[c.hash]; s.name != "" && s.retry.Wait(now) <= 0 {
			s.retry.Succeed() // also if nothing is left to be tried again
		}
	}
	return f.removeLeftovers(ctx, now)
}

// isGeneral reports whether every request to the forge or the Git server is likely to fail in
// the same way. Other errors are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*remote.HTTPError](err)
	return remote || forge.IsGeneral(err)
}

// steps are taken one after the other, each for all changes for which it is due, the oldest first.
var steps = []struct {
	due func(f *follower, c *change, s *offerState, now time.Time) bool
	do  func(f *follower, ctx context.Context, c *change, s *offerState, now time.Time) error
}{
	{(*follower).isMerged, (*follower).checkMerged},
	{(*follower).hasOtherIssue, (*follower).followIssue},
	{(*follower).hasReplaceableIssue, (*follower).replaceIssue},
	{leavesGroup, leaveGroup},
	{(*follower).isDue, (*follower).offer},
	{isJoining, join},
	{(*follower).isUnanswered, (*follower).expire},
	{(*follower).isOpen, (*follower).update},
}

// isMerged reports whether it is to be found out if the merge of a pull request has its change.
func (f *follower) isMerged(_ *change, s *offerState, _ time.Time) bool {
	return s.State == forge.Merged && s.lacksMerge != f.known.commit
}

// isOpen reports whether a pull request or an issue of the kind that the change needs is open.
func (f *follower) isOpen(c *change, s *offerState, _ time.Time) bool {
	_, listed := f.open[s.name]
	return listed && s.State == forge.Open && s.isIssue() == (c.reason != nil)
}

// isUnanswered reports whether an open pull request or issue has waited too long for a decision. One that somebody has
// opened again is not closed once more.
func (f *follower) isUnanswered(c *change, s *offerState, now time.Time) bool {
	pr, listed := f.open[s.name]
	return f.tracker.cfg.ExpireAfter > 0 && c.rollback == nil && listed && s.State == forge.Open && !s.onHold() && !pr.Opened.IsZero() && now.Sub(pr.Opened) >= f.tracker.cfg.ExpireAfter &&
		!strings.Contains(pr.Body, expiredMarker)
}

// expire closes a pull request or an issue about which nobody has decided. The object stays as it is.
func (f *follower) expire(ctx context.Context, _ *change, s *offerState, _ time.Time) error {
	current, err := f.tracker.current(ctx, s.thread) // it may have been closed since the last list
	if err != nil || current == nil || current.State != forge.Open || current.onHold() {
		return err
	}
	comment := "Nobody has decided about this within " + f.tracker.cfg.ExpireAfter.String() + ", so it is closed. The object stays as it is on the clusters, and is reported. " +
		"To decide, "
	if s.isIssue() {
		comment += "open this again, or "
	}
	name := branchHash(s.name)
	comment += fmt.Sprintf("use `gitfleet proposals open %s`, which offers it again, or `gitfleet proposals close %s`, which reverts it.", name, name)
	body := strings.TrimSpace(current.Body) + "\n" + expiredMarker + "\n"
	if err := f.tracker.end(ctx, *current, comment, body); err != nil {
		return err
	}
	f.tracker.cfg.Log.Info("a proposal of a drift is closed, since nobody decided about it", "url", current.URL)
	f.removeBranch(ctx, s.name)
	delete(f.open, s.name)
	delete(f.written, s.name)
	delete(f.ended, s.name)
	current.State, current.Body = forge.Closed, body
	for _, each := range f.states {
		if each.name == current.name {
			each.thread = *current
		}
	}
	return nil
}

// isDue reports whether the forge is to be asked about a change now.
func (f *follower) isDue(c *change, s *offerState, now time.Time) bool {
	if s.name != "" || f.putBack[c.hash] != "" {
		return false
	}
	if f.canOffer(c, now) && !(s.neverOffered && groupOf(f, c) != "") {
		return s.asked || !waitsFor(c, s, f.tracker.cfg.MinAge).After(now)
	}
	return !s.neverOffered
}

// checkMerged makes a change be offered again if the commit in force has the merge of its pull
// request but not the change: people have removed it from the branch, or reverted it at once.
func (f *follower) checkMerged(ctx context.Context, _ *change, s *offerState, now time.Time) error {
	merged := false
	if s.mergeCommit != "" {
		var err error
		if merged, err = f.tracker.cfg.Contains(ctx, f.known.commit, s.mergeCommit); err != nil {
			return err
		}
	}
	if !merged {
		s.lacksMerge = f.known.commit
		return nil
	}
	f.tracker.cfg.Log.Info("a pull request of a drift was merged without the change, which is offered anew", "url", s.URL)
	*s = offerState{since: now}
	return nil
}

// closeEnded closes the pull requests and issues whose drift is over. It returns only errors that every request is likely to
// meet.
func (f *follower) closeEnded(ctx context.Context, now time.Time) error {
	if f.known.lost {
		return nil
	}
	undecided := f.known.undecided()
	for _, branch := range slices.Sorted(maps.Keys(f.open)) {
		pr := f.open[branch]
		if isNeeded(f, pr, undecided) {
			delete(f.missing, branch)
			delete(f.ending, branch)
			continue
		}
		since, known := f.missing[branch]
		if !known {
			f.missing[branch] = now
			continue
		}
		if now.Sub(since) < recoveryGrace {
			continue
		}
		retry := cmp.Or(f.ending[branch], &poll.Backoff{})
		if retry.Wait(now) > 0 {
			continue
		}
		switch err := closeOver(ctx, f, pr); {
		case err == nil:
			delete(f.open, branch)
			delete(f.missing, branch)
			delete(f.written, branch)
			delete(f.ending, branch)
			continue
		case isGeneral(err):
			return err
		case retry.Fail(err, now):
			f.tracker.cfg.Log.Warn("a drift is over, and its proposal is not closed; trying again", "url", pr.URL, "err", err)
		}
		f.ending[branch] = retry
	}
	return nil
}

// closeOver closes a pull request or an issue whose drift is over, unless it is closed by now.
func closeOver(ctx context.Context, f *follower, pr thread) error {
	current, err := f.tracker.current(ctx, pr)
	if err != nil || current == nil || current.State != forge.Open {
		return err
	}
	if err := f.tracker.end(ctx, pr, overComment(pr), markEnded(pr.Body)); err != nil {
		return err
	}
	f.tracker.cfg.Log.Info("a proposal is closed, since it is over", "url", pr.URL)
	f.removeBranch(ctx, pr.name)
	return nil
}

// isOver reports whether a pull request or issue no longer counts for a change that has lasted since a
// time: it was merged before, or gitfleet itself has closed it.
func isOver(pr *thread, since time.Time) bool {
	switch pr.State {
	case forge.Merged:
		return pr.Ended.Before(since)
	case forge.Closed:
		return endedByGitfleet(pr.Body)
	}
	return false
}

// closedByGitfleet reports whether nobody decided about a pull request or an issue that is closed.
func closedByGitfleet(pr *thread) bool {
	return pr.State == forge.Closed && endedByGitfleet(pr.Body)
}
