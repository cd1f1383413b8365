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
	var last thread
	for _, pr := range f.open {
		if isRollback(pr.name) {
			continue // does not list what waits
		}
		if last.name == "" || last.isIssue() && !pr.isIssue() || last.isIssue() == pr.isIssue() && pr.Number > last.Number {
			last = pr
		}
	}
	return last.name
}

// listWaiting returns the changes that wait because enough are open. The list is updated once in an
// interval, since in a burst more changes wait with every pass.
func (f *follower) listWaiting(now time.Time) []*change {
	if now.Sub(f.waitingListed) >= f.tracker.cfg.Interval {
		f.waitingList, f.waitingListed = nil, now
		for _, c := range f.changesByAge() {
			if s := f.states[c.hash]; s.name == "" && s.waits != "" {
				f.waitingList = append(f.waitingList, c)
			}
		}
	}
	return f.waitingList
}

// canOffer reports whether a change can be offered as a pull request or as an issue.
func (f *follower) canOffer(c *change, now time.Time) bool {
	return c.reason == nil || f.tracker.offersIssues(now)
}

// offer opens the pull request or issue of a change, or finds an existing one.
func (f *follower) offer(ctx context.Context, c *change, s *offerState, now time.Time) error {
	found, err := f.findOrOpen(ctx, c, s, now)
	if err != nil || found == nil {
		return f.tracker.noteDisabled(err, now)
	}
	s.found(*found)
	if found.State != forge.Open {
		return nil
	}
	f.open[found.name] = *found
	if s.askedBy != "" {
		f.record(history.ProposalOpened, heldItem{change: c}, s.askedBy, s.URL)
		s.askedBy = ""
	}
	return nil
}

// findOrOpen returns the pull request or issue of a change, also of the other kind, since it may have
// changed whether an edit can express the change; nil if there is none and none may be opened. One
// that exists is also found if the change cannot be offered any more.
func (f *follower) findOrOpen(ctx context.Context, c *change, s *offerState, now time.Time) (*thread, error) {
	if found := f.findOpen(c.hash); found != nil && mayStay(f, c, found) {
		return found, nil
	}
	placement := groupOf(f, c)
	if placement == "" && c.rollback == nil && f.canOffer(c, now) && f.atLimit(s) {
		return nil, nil
	}
	found, branch, err := f.tracker.findEarlier(ctx, c, s, now)
	if placement != "" && err == nil && found == nil {
		found, err = findInGroups(f, ctx, placement, c.hash, s.since)
	}
	s.neverOffered = err == nil && found == nil
	switch {
	case err != nil || found != nil || !f.canOffer(c, now) || placement != "": // the last is opened by join
		return found, err
	case c.reason != nil:
		f.setLink(c, "")
		return f.tracker.createIssue(ctx, c)
	case branch == "":
		s.waits = fmt.Sprintf("the same change was offered %d times, and is not offered again", maxAttempts)
		return nil, nil
	}
	found, err = f.create(ctx, c, branch, now)
	if err == nil {
		f.written[branch] = written{files: c.files, message: f.commit(c, branch, now).Message}
	}
	return found, err
}

// atLimit reports whether no more pull requests and issues may be opened now, and records that with the
// change.
func (f *follower) atLimit(s *offerState) bool {
	open, retried := countDrift(f.open), f.countRetried(s)
	if s.asked || open+retried < f.tracker.cfg.MaxOpen {
		return false
	}
	what := "pull requests"
	for branch := range f.open {
		if isIssue(branch) {
			what = "pull requests and issues"
		}
	}
	s.waits = fmt.Sprintf("%s of drift: %d open", what, open)
	if open < f.tracker.cfg.MaxOpen {
		s.waits += fmt.Sprintf(", %d not opened because of errors and retried", retried)
	}
	s.waits += fmt.Sprintf("; drift.maxOpen allows %d", f.tracker.cfg.MaxOpen)
	return true
}

// countRetried counts the other changes that could not be offered and are retried. They count for the
// limit, since a failure that affects all changes must not be met by each of them.
func (f *follower) countRetried(but *offerState) int {
	n := 0
	for _, s := range f.states {
		if s != but && s.name == "" && s.retry.Failures() > 0 {
			n++
		}
	}
	return n
}

// create makes the branch and the pull request of a change or a group. Whatever of that is there
// already, because gitfleet was killed or another daemon was faster, is not made again.
func (f *follower) create(ctx context.Context, o offer, branch string, now time.Time) (*thread, error) {
	setLinks(f, o, "")
	faults.At("before branch")
	state, err := f.tracker.cfg.Branches.Publish(ctx, f.commit(o, branch, now))
	faults.At("after branch")
	if err != nil {
		return nil, err
	}
	if state.Others {
		return nil, fmt.Errorf("branch %s has commits of other people and no pull request: open one, or delete the branch", branch)
	}
	f.tracker.ensureLabels(ctx, o.labels())
	pr, err := f.tracker.cfg.Forge.OpenPullRequest(ctx, forge.NewPullRequest{
		Base: f.tracker.cfg.Base, Branch: branch, Title: o.title(), Body: o.body(f.tracker.cfg.Fleet, nil) + f.noReviewers() + recordOf(o.title(), o.labels()).String(), Labels: o.labels(),
	})
	faults.At("after pull request")
	if err != nil && pr.Number == 0 {
		return nil, err
	}
	if err != nil {
		f.tracker.cfg.Log.Warn("labels of a pull request not set", "url", pr.URL, "err", err)
	}
	for _, c := range o.all() {
		f.tracker.logOffered(c, "as a pull request", pr.URL)
	}
	if f.tracker.cfg.Opened != nil {
		f.tracker.cfg.Opened()
	}
	return fromPullRequest(&pr, nil)
}

// commit returns the commit for the branch of a change or a group.
func (f *follower) commit(o offer, branch string, now time.Time) gitsource.BranchCommit {
	marker := trailer(branch)
	out := gitsource.BranchCommit{Branch: branch, Base: f.known.commit, Files: map[string][]byte{}, Message: o.message(marker), Marker: marker, Time: now}
	for _, file := range o.edit() {
		out.Files[file.Path] = file.After
	}
	return out
}

// setLinks sets the addresses of all changes.
func setLinks(f *follower, o offer, body string) {
	for _, c := range o.all() {
		f.setLink(c, body)
	}
}

// setLink sets the address of a change's line in Git: the one that the body has, or else that in the commit in force.
func (f *follower) setLink(c *change, body string) {
	if c.source.Path == "" {
		return
	}
	if c.link = linkIn(body, c.source); c.link == "" {
		c.link = f.tracker.cfg.Forge.LineURL(f.known.commit, c.source.Path, c.source.Line)
	}
}

// update updates an open pull request or issue: the branch with its commit, the body, and the title and the labels as
// far as nobody has edited them.
func (f *follower) update(ctx context.Context, c *change, s *offerState, now time.Time) error {
	o, err := currentOffer(f, c, s)
	if err != nil || o == nil || s.name == "" {
		return err
	}
	pr := f.open[s.name]
	if !s.isIssue() {
		if err := f.updateBranch(ctx, o, pr, now); err != nil {
			return err
		}
	}
	var waiting []*change
	if s.name == f.newest() {
		waiting = f.listWaiting(now)
	}
	setLinks(f, o, pr.Body)
	body := o.body(f.tracker.cfg.Fleet, waiting)
	if strings.Contains(pr.Body, expiredMarker) {
		body += expiredMarker + "\n"
	}
	if !s.isIssue() && f.requestsReviews() {
		asked, err := f.askReviewers(ctx, o, pr)
		if err != nil {
			return err
		}
		body += asked.String()
	}
	edit, after, needed := editTo(pr, o.title(), o.labels(), body)
	if !needed {
		return nil
	}
	if err := f.tracker.cfg.Forge.Edit(ctx, pr.Thread, edit); err != nil {
		return err
	}
	f.open[s.name] = after
	return nil
}

// requestsReviews reports whether reviews of pull requests may have to be requested.
func (f *follower) requestsReviews() bool {
	return len(f.tracker.cfg.Reviewers)+len(f.tracker.cfg.OwnersFiles) > 0
}

// noReviewers is the line of a new body that says that no reviews were requested yet.
func (f *follower) noReviewers() string {
	if !f.requestsReviews() {
		return ""
	}
	return askedReviewers(nil).String()
}

// askReviewers requests the reviews of an open pull request that are not requested yet. Their list is made again if the commit in
// force or the changed files are others.
func (f *follower) askReviewers(ctx context.Context, o offer, pr thread) (askedReviewers, error) {
	key := f.known.commit
	for _, file := range o.edit() {
		key += " " + file.Path
	}
	w := f.written[pr.name]
	if w.reviewersOf != key {
		names, err := f.tracker.reviewersOf(ctx, o.edit(), f.known.commit)
		if err != nil {
			f.tracker.cfg.Log.Warn("owners of changed files not read; trying again", "url", pr.URL, "err", err)
			asked, _ := askedIn(pr.Body)
			return asked, nil
		}
		w.reviewersOf, w.reviewers = key, names
		f.written[pr.name] = w
	}
	return f.tracker.requestReviewers(ctx, pr, w.reviewers)
}

// updateBranch updates the branch of an open pull request, unless it has the files and the message that it has to have.
func (f *follower) updateBranch(ctx context.Context, o offer, pr thread, now time.Time) error {
	commit := f.commit(o, pr.name, now)
	w := f.written[pr.name]
	if w.message == commit.Message && reflect.DeepEqual(w.files, o.edit()) {
		return nil
	}
	state, err := f.tracker.cfg.Branches.Publish(ctx, commit)
	if err == nil && state.Outdated {
		err = f.tracker.commentOnce(ctx, pr, outdatedMarker, outdatedComment)
	}
	if err == nil {
		w.files, w.message = o.edit(), commit.Message
		f.written[pr.name] = w
	}
	return err
}
