package proposal

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// newest is the branch of the pull request that was opened last; that of the issue if no pull
// request is open. Numbers of issues and of pull requests may be counted apart.
func (f *follower) newest() string {
	var last forge.PullRequest
	for _, pr := range f.open {
		if last.Branch == "" || isIssue(last.Branch) && !isIssue(pr.Branch) || isIssue(last.Branch) == isIssue(pr.Branch) && pr.Number > last.Number {
			last = pr
		}
	}
	return last.Branch
}

// listWaiting returns the changes that wait because enough are open. The list is updated once in an
// interval, since in a burst more changes wait with every pass.
func (f *follower) listWaiting(now time.Time) []*change {
	if now.Sub(f.waitingListed) >= f.cfg.Interval {
		f.waitingList, f.waitingListed = nil, now
		for _, c := range f.changesByAge() {
			if s := f.states[c.hash]; s.branch == "" && s.waits != "" {
				f.waitingList = append(f.waitingList, c)
			}
		}
	}
	return f.waitingList
}

// mostAttempts is the maximum number of times that the same change is offered again after it
// had ended.
const mostAttempts = 100

// canOffer reports whether a change can be offered as a pull request or as an issue.
func (f *follower) canOffer(c *change, now time.Time) bool {
	return c.reason == nil || f.offersIssues(now)
}

// offer opens the pull request or issue of a change, or finds an existing one.
func (f *follower) offer(ctx context.Context, c *change, s *offerState, now time.Time) error {
	found, err := f.findOrOpen(ctx, c, s, now)
	if err != nil || found == nil {
		return f.noteDisabled(err, now)
	}
	s.found(*found)
	if found.State != forge.Open {
		return nil
	}
	f.open[found.Branch] = *found
	if s.askedBy != "" {
		f.record(history.ProposalOpened, heldItem{change: c}, s.askedBy, s.url)
		s.askedBy = ""
	}
	return nil
}

// findOrOpen returns the pull request or issue of a change, also of the other kind, since it may have
// changed whether an edit can express the change; nil if there is none and none may be opened. One
// that exists is also found if the change cannot be offered any more.
func (f *follower) findOrOpen(ctx context.Context, c *change, s *offerState, now time.Time) (*forge.PullRequest, error) {
	if found := f.findOpen(c.hash); found != nil {
		return found, nil
	}
	if f.canOffer(c, now) && f.atLimit(s) {
		return nil, nil
	}
	found, branch, err := f.findEarlier(ctx, c, s, now)
	s.neverOffered = err == nil && found == nil
	switch {
	case err != nil || found != nil || !f.canOffer(c, now):
		return found, err
	case c.reason != nil:
		f.setLink(c, "")
		return f.createIssue(ctx, c)
	case branch == "":
		s.waits = fmt.Sprintf("the same change was offered %d times, and is not offered again", mostAttempts)
		return nil, nil
	}
	found, err = f.create(ctx, c, branch, now)
	if err == nil {
		s.published, s.message = c.files, f.commit(c, branch, now).Message
	}
	return found, err
}

// findOpen returns the open pull request or issue of a change; nil if there is none.
func (f *follower) findOpen(hash string) *forge.PullRequest {
	for branch, pr := range f.open {
		if branchHash(branch) == hash {
			return &pr
		}
	}
	return nil
}

// atLimit reports whether no more pull requests and issues may be opened now, and records that with the
// change.
func (f *follower) atLimit(s *offerState) bool {
	open, retried := len(f.open), f.countRetried(s)
	if s.asked || open+retried < f.cfg.MaxOpen {
		return false
	}
	what := "pull requests"
	for branch := range f.open {
		if isIssue(branch) {
			what = "pull requests and issues"
		}
	}
	s.waits = fmt.Sprintf("%s of drift: %d open", what, open)
	if open < f.cfg.MaxOpen {
		s.waits += fmt.Sprintf(", %d not opened because of errors and retried", retried)
	}
	s.waits += fmt.Sprintf("; drift.maxOpen allows %d", f.cfg.MaxOpen)
	return true
}

// countRetried counts the other changes that could not be offered and are retried. They count for the
// limit, since a failure that affects all changes must not be met by each of them.
func (f *follower) countRetried(but *offerState) int {
	n := 0
	for _, s := range f.states {
		if s != but && s.branch == "" && s.retry.Failures() > 0 {
			n++
		}
	}
	return n
}

// create makes the branch and the pull request of a change. Whatever of that is there
// already, because gitfleet was killed or another daemon was faster, is not made again.
func (f *follower) create(ctx context.Context, c *change, branch string, now time.Time) (*forge.PullRequest, error) {
	f.setLink(c, "")
	faults.At("before branch")
	state, err := f.cfg.Branches.Publish(ctx, f.commit(c, branch, now))
	faults.At("after branch")
	if err != nil {
		return nil, err
	}
	if state.Others {
		return nil, fmt.Errorf("branch %s has commits of other people and no pull request: open one, or delete the branch", branch)
	}
	f.ensureLabels(ctx, c.labels())
	pr, err := f.cfg.Forge.OpenPullRequest(ctx, forge.NewPullRequest{
		Base: f.cfg.Base, Branch: branch, Title: c.title(), Body: c.body(f.cfg.Fleet, nil) + f.noReviewers() + recordOf(c.title(), c.labels()).String(), Labels: c.labels(),
	})
	faults.At("after pull request")
	if err != nil && pr.Number == 0 {
		return nil, err
	}
	if err != nil {
		f.cfg.Log.Warn("labels of a pull request not set", "url", pr.URL, "err", err)
	}
	f.cfg.Log.Info("a drift is offered as a pull request", "url", pr.URL, "object", c.id.String())
	if f.cfg.Opened != nil {
		f.cfg.Opened()
	}
	return &pr, nil
}

// commit returns the commit for the branch of a change.
func (f *follower) commit(c *change, branch string, now time.Time) gitsource.BranchCommit {
	marker := trailer(branchHash(branch))
	out := gitsource.BranchCommit{Branch: branch, Base: f.known.commit, Files: map[string][]byte{}, Message: c.message(marker), Marker: marker, Time: now}
	for _, file := range c.files {
		out.Files[file.Path] = file.After
	}
	return out
}

// setLink sets the address of a change's line in Git: the one that the body has, or else that in the commit in force.
func (f *follower) setLink(c *change, body string) {
	if c.source.Path == "" {
		return
	}
	if c.link = linkIn(body, c.source); c.link == "" {
		c.link = f.cfg.Forge.LineURL(f.known.commit, c.source.Path, c.source.Line)
	}
}

// sameText reports whether two bodies are equal except for changes that a forge makes.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(b)
}

// update updates an open pull request or issue: the branch with its commit, the body, and the title and the labels as
// far as nobody has edited them.
func (f *follower) update(ctx context.Context, c *change, s *offerState, now time.Time) error {
	pr := f.open[s.branch]
	if !isIssue(s.branch) {
		if err := f.updateBranch(ctx, c, s, pr, now); err != nil {
			return err
		}
	}
	var waiting []*change
	if s.branch == f.newest() {
		waiting = f.listWaiting(now)
	}
	f.setLink(c, pr.Body)
	body := c.body(f.cfg.Fleet, waiting)
	if strings.Contains(pr.Body, expiredMarker) {
		body += expiredMarker + "\n"
	}
	if !isIssue(s.branch) && f.requestsReviews() {
		asked, err := f.askReviewers(ctx, c, s, pr)
		if err != nil {
			return err
		}
		body += asked.String()
	}
	edit, after, needed := editTo(pr, c.title(), c.labels(), body)
	if !needed {
		return nil
	}
	if err := f.edit(ctx, pr, edit); err != nil {
		return err
	}
	f.open[s.branch] = after
	return nil
}

// requestsReviews reports whether reviews of pull requests may have to be requested.
func (f *follower) requestsReviews() bool { return len(f.cfg.Reviewers)+len(f.cfg.OwnersFiles) > 0 }

// noReviewers is the line of a new body that says that no reviews were requested yet.
func (f *follower) noReviewers() string {
	if !f.requestsReviews() {
		return ""
	}
	return askedReviewers(nil).String()
}

// askReviewers requests the reviews of an open pull request that are not requested yet. Their list is made again if the commit in
// force or the changed files are others.
func (f *follower) askReviewers(ctx context.Context, c *change, s *offerState, pr forge.PullRequest) (askedReviewers, error) {
	key := f.known.commit
	for _, file := range c.files {
		key += " " + file.Path
	}
	if s.reviewersOf != key {
		names, err := f.reviewersOf(ctx, c, f.known.commit)
		if err != nil {
			f.cfg.Log.Warn("owners of changed files not read; trying again", "url", pr.URL, "err", err)
			asked, _ := askedIn(pr.Body)
			return asked, nil
		}
		s.reviewersOf, s.reviewers = key, names
	}
	return f.requestReviewers(ctx, pr, s.reviewers)
}

// updateBranch updates the branch of an open pull request, unless it has the files and the message of the change.
func (f *follower) updateBranch(ctx context.Context, c *change, s *offerState, pr forge.PullRequest, now time.Time) error {
	commit := f.commit(c, s.branch, now)
	if s.message == commit.Message && reflect.DeepEqual(s.published, c.files) {
		return nil
	}
	state, err := f.cfg.Branches.Publish(ctx, commit)
	if err == nil && state.Outdated {
		err = f.commentOnce(ctx, pr, outdatedMarker, outdatedComment)
	}
	if err == nil {
		s.published, s.message = c.files, commit.Message
	}
	return err
}
