package proposal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/proposal/rollback"
)

// recoveryGrace is how long the drift has to be gone before its pull request is closed:
// after a restart, the members have not reported their drift yet.
const recoveryGrace = time.Minute

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

// isNeeded reports whether a pull request or an issue offers a change that is held, or may be.
func isNeeded(f *follower, pr thread, undecided map[string]bool) bool {
	hashes, _ := offeredIn(pr.Body)
	for _, hash := range hashes {
		if s := f.states[hash]; s != nil && s.name == "" || undecided[hash] {
			return true
		}
	}
	if hash := branchHash(pr.name); f.states[hash] != nil || undecided[hash] {
		return true
	}
	for _, s := range f.states {
		if s.name == pr.name {
			return true
		}
	}
	return !isRollback(pr.name) && !slices.Contains(pr.Labels, rollback.Label) && mayListAny(pr.Body, f.known.unanswered)
}
