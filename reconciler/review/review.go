package review

import (
	"context"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
)

// ownBranches is the prefix of the branches from which gitfleet itself opens pull requests.
const ownBranches = "gitfleet/"

// A review is the state of one open pull request.
type review struct {
	pr forge.PullRequest
	// headOrder is the number of the head, in the order in which heads were found.
	headOrder int
	// key identifies the last plan, if it is not stale. shown is the status of the commit.
	key   string
	shown forge.Status
	// tried is when it was last planned; zero if it never was.
	tried time.Time
	// marked says that the status shows that the plan is awaited, or outdated.
	marked bool
	// trialsRunning says that trials of the plan are running. answered is the plan with their results;
	// nil until they have finished.
	trialsRunning bool
	answered      *Result
	retry         poll.Backoff
}

// planned records that a plan was written.
func (r *review) planned(key string) {
	r.key, r.marked, r.trialsRunning, r.answered, r.retry = key, false, false, nil, poll.Backoff{}
}

// A fork is what is known of a pull request from a fork: for which commit a maintainer has set the
// label. The label itself stays when another commit is pushed.
type fork struct {
	// unlabeled is the head that it had while it did not have the label.
	unlabeled string
	// allowed is the head for which the label was set.
	allowed string
	// refused is the head for which it is not known whether the label was set for it.
	refused string
}

// openedByGitfleet reports whether gitfleet itself opened a pull request. Such a pull request describes its
// effects, so that its plan is only a status.
func openedByGitfleet(pr forge.PullRequest) bool {
	return !pr.Fork && strings.HasPrefix(pr.Branch, ownBranches)
}

// key identifies a plan: the two commits and the fleet.
func (v *Reviewer) key(pr forge.PullRequest) string {
	return shortHash(pr.Head) + "-" + shortHash(v.tip) + "-" + v.state
}

// recordError records an error about a pull request, so that others are planned first. It returns the
// error if others are likely to meet it too.
func (v *Reviewer) recordError(ctx context.Context, r *review, err error, now time.Time) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if r.retry.Fail(err, now) {
		v.cfg.Log.Warn("pull request not planned; trying again", "url", r.pr.URL, "commit", r.pr.Head, "err", err)
	}
	if forge.IsGeneral(err) {
		return err
	}
	return nil
}
