package proposal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/reconciler/faults"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// sync reads the state of the pull requests and issues, closes those whose drift has ended, and
// opens those that are due. It sends no request if nothing is to be done. Only errors that
// every request is likely to meet are returned; others are recorded with their change.
func (p *Proposer) sync(ctx context.Context, now time.Time) error {
	if p.woken || p.allIssues != nil && (p.allIssues.err != nil || now.Sub(p.allIssues.at) >= p.cfg.Interval) {
		p.allIssues = nil
	}
	if pulls, issues := p.toList(now); pulls || issues {
		if p.woken {
			p.cfg.Forge.ForgetList()
		}
		p.woken = false
		if err := p.look(ctx, now, pulls, issues); err != nil {
			return err
		}
	}
	if err := p.closeEnded(ctx, now); err != nil {
		return err
	}
	offers := p.offersByAge()
	for _, s := range steps {
		for _, o := range offers {
			c := p.changes[o.hash]
			if c.retry.Wait(now) > 0 || !s.due(p, o, c, now) {
				continue
			}
			err := s.do(p, ctx, o, c, now)
			switch {
			case err == nil:
				c.retry.Succeed()
			case isGeneral(err):
				return err
			case c.retry.Fail(err, now):
				p.cfg.Log.Warn("a drift is not offered on the forge; trying again", "url", c.url, "err", err)
			}
		}
	}
	return p.removeLeftovers(ctx, now)
}

// isGeneral reports whether every request to the forge or the Git server is likely to fail in
// the same way. Other errors are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*remote.HTTPError](err)
	return remote || forge.IsGeneral(err)
}

// steps are taken one after the other, each for all changes for which it is due, the oldest first.
var steps = []struct {
	due func(p *Proposer, o *offer, c *change, now time.Time) bool
	do  func(p *Proposer, ctx context.Context, o *offer, c *change, now time.Time) error
}{
	{(*Proposer).isMerged, (*Proposer).lookAtMerged},
	{(*Proposer).hasOtherIssue, (*Proposer).followIssue},
	{(*Proposer).hasNeedlessIssue, (*Proposer).replaceIssue},
	{(*Proposer).isDue, (*Proposer).offer},
	{(*Proposer).isOpen, (*Proposer).update},
}

// isMerged reports whether it is to be found out if the merge of a pull request has its change.
func (p *Proposer) isMerged(_ *offer, c *change, _ time.Time) bool {
	return c.state == forge.Merged && c.lacksMerge != p.known.commit
}

// isOpen reports whether a pull request or an issue of the kind that the change needs is open.
func (p *Proposer) isOpen(o *offer, c *change, _ time.Time) bool {
	_, listed := p.open[c.branch]
	return listed && c.state == forge.Open && isIssue(c.branch) == (o.reason != nil)
}

// isDue reports whether the forge is to be asked about a change now.
func (p *Proposer) isDue(o *offer, c *change, now time.Time) bool {
	if c.branch != "" || p.putBack[o.hash] != "" {
		return false
	}
	if p.canOffer(o, now) {
		return c.asked || !c.due(p.cfg.MinAge).After(now)
	}
	return !c.neverOffered
}

// lookAtMerged makes a change be offered again if the commit in force has the merge of its pull
// request but not the change: people have removed it from the branch, or reverted it at once.
func (p *Proposer) lookAtMerged(ctx context.Context, _ *offer, c *change, now time.Time) error {
	merged := false
	if c.merge != "" {
		var err error
		if merged, err = p.cfg.Contains(ctx, p.known.commit, c.merge); err != nil {
			return err
		}
	}
	if !merged {
		c.lacksMerge = p.known.commit
		return nil
	}
	p.cfg.Log.Info("a pull request of a drift was merged without the change, which is offered anew", "url", c.url)
	*c = change{since: now}
	return nil
}

// newest is the branch of the pull request that was opened last; that of the issue if no pull
// request is open. Numbers of issues and of pull requests may be counted apart.
func (p *Proposer) newest() string {
	var last forge.PullRequest
	for _, pr := range p.open {
		if last.Branch == "" || isIssue(last.Branch) && !isIssue(pr.Branch) || isIssue(last.Branch) == isIssue(pr.Branch) && pr.Number > last.Number {
			last = pr
		}
	}
	return last.Branch
}

// listWaiting returns the offers that wait because enough are open. The list is updated once in an
// interval, since in a burst more changes wait with every pass.
func (p *Proposer) listWaiting(now time.Time) []*offer {
	if now.Sub(p.waitingListed) >= p.cfg.Interval {
		p.waitingList, p.waitingListed = nil, now
		for _, o := range p.offersByAge() {
			if c := p.changes[o.hash]; c.branch == "" && c.waits != "" {
				p.waitingList = append(p.waitingList, o)
			}
		}
	}
	return p.waitingList
}

// closeEnded closes the pull requests and issues whose drift is over.
func (p *Proposer) closeEnded(ctx context.Context, now time.Time) error {
	if p.known.lost {
		return nil
	}
	undecided, former := p.known.undecided(), p.known.formerHashes()
	for _, branch := range slices.Sorted(maps.Keys(p.open)) {
		pr := p.open[branch]
		hash := changeHash(branch)
		if p.changes[hash] != nil || undecided[hash] || former[hash] || names(pr.Body, p.known.unheard) {
			delete(p.missing, branch)
			continue
		}
		since, known := p.missing[branch]
		if !known {
			p.missing[branch] = now
			continue
		}
		if now.Sub(since) < recoveryGrace {
			continue
		}
		const comment = "The drift is over: no cluster has the change any more, or Git has another value by now. There is nothing left to decide."
		current, err := p.current(ctx, branch, pr.Number)
		if err != nil {
			return err
		}
		if current != nil && current.State == forge.Open {
			if err := p.end(ctx, pr, comment, ended(pr.Body)); err != nil {
				return err
			}
			p.cfg.Log.Info("a drift is over; its proposal is closed", "url", pr.URL)
			p.removeBranch(ctx, branch)
		}
		delete(p.open, branch)
		delete(p.missing, branch)
	}
	return nil
}

// mostAttempts is the maximum number of times that the same change is offered again after it
// had ended.
const mostAttempts = 100

// canOffer reports whether a change can be offered as a pull request or as an issue.
func (p *Proposer) canOffer(o *offer, now time.Time) bool {
	return o.reason == nil || p.offersIssues(now)
}

// offer opens the pull request or issue of a change, or finds an existing one.
func (p *Proposer) offer(ctx context.Context, o *offer, c *change, now time.Time) error {
	found, err := p.findOrOpen(ctx, o, c, now)
	if err != nil || found == nil {
		return p.withoutIssues(err, now)
	}
	c.found(*found)
	if found.State != forge.Open {
		return nil
	}
	p.open[found.Branch] = *found
	if c.askedBy != "" {
		p.record(history.ProposalOpened, heldItem{offer: o}, c.askedBy, c.url)
		c.askedBy = ""
	}
	return nil
}

// findOrOpen returns the pull request or issue of a change, also of the other kind, since it may have
// changed whether an edit can express the change; nil if there is none and none may be opened. One
// that exists is also found if the change cannot be offered any more.
func (p *Proposer) findOrOpen(ctx context.Context, o *offer, c *change, now time.Time) (*forge.PullRequest, error) {
	for _, pr := range p.open {
		if p.isOf(pr, o) {
			return &pr, nil
		}
	}
	if p.canOffer(o, now) && p.full(c) {
		return nil, nil
	}
	found, branch, err := p.findEarlier(ctx, o, c, now)
	c.neverOffered = err == nil && found == nil
	switch {
	case err != nil || found != nil || !p.canOffer(o, now):
		return found, err
	case o.reason != nil:
		return p.createIssue(ctx, o)
	case branch == "":
		c.waits = "the same change was offered too often"
		return nil, nil
	}
	found, err = p.create(ctx, o, branch, now)
	if err == nil {
		c.published = o.changes
	}
	return found, err
}

// findEarlier returns the pull request or the issue that offered a change before and still counts;
// nil if there is none. Then branch is the first one of the change without a pull request, and empty
// if there are too many.
func (p *Proposer) findEarlier(ctx context.Context, o *offer, c *change, now time.Time) (found *forge.PullRequest, branch string, err error) {
	found, branch, err = p.findUnder(ctx, o.hash, o, c, now)
	if err == nil && found == nil && o.former != "" {
		if found, _, err = p.findUnder(ctx, o.former, o, c, now); found != nil && !p.isOf(*found, o) {
			found = nil
		}
	}
	return found, branch, err
}

// findUnder is findEarlier for one of the hashes of a change.
func (p *Proposer) findUnder(ctx context.Context, hash string, o *offer, c *change, now time.Time) (found *forge.PullRequest, branch string, err error) {
	if o.reason != nil { // it cannot be offered without issues
		if p.offersIssues(now) {
			found, err = p.findIssue(ctx, hash, c.since, now)
			if err = p.withoutIssues(err, now); err != nil || found != nil {
				return found, "", err
			}
		}
		return p.findPullRequest(ctx, hash, c.since)
	}
	found, branch, err = p.findPullRequest(ctx, hash, c.since)
	if err == nil && found == nil {
		found, err = p.findIssueIfListed(ctx, hash, c, now)
	}
	return found, branch, err
}

// findPullRequest returns the pull request of a change that still counts; nil if there is none.
func (p *Proposer) findPullRequest(ctx context.Context, hash string, since time.Time) (found *forge.PullRequest, branch string, err error) {
	for attempt := 1; attempt <= mostAttempts; attempt++ {
		branch := branchPrefix + hash
		if attempt > 1 {
			branch += fmt.Sprintf("-%d", attempt)
		}
		found, err := p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
		if err != nil || found == nil || !over(found, since) {
			return found, branch, err
		}
	}
	return nil, "", nil
}

// full reports whether no more requests may be opened now, and records that with the change.
func (p *Proposer) full(c *change) bool {
	n := p.taken(c)
	if n < p.cfg.MaxOpen || c.asked {
		return false
	}
	what := "pull requests"
	for branch := range p.open {
		if isIssue(branch) {
			what = "pull requests and issues"
		}
	}
	c.waits = fmt.Sprintf("%d %s of drifts are open already, and no more are opened at once", n, what)
	return true
}

// taken counts the open pull requests and issues. As long as more may be opened, it also counts the
// other changes that could not be offered and are retried: a failure that affects all must not be met
// by each of them.
func (p *Proposer) taken(but *change) int {
	n := len(p.open)
	if n >= p.cfg.MaxOpen {
		return n
	}
	for _, c := range p.changes {
		if c != but && c.branch == "" && c.retry.Failures() > 0 {
			n++
		}
	}
	return n
}

// over reports whether a pull request belongs to an earlier drift with the same change.
func over(pr *forge.PullRequest, since time.Time) bool {
	switch pr.State {
	case forge.Merged:
		return pr.Ended.Before(since)
	case forge.Closed:
		return endedByGitfleet(pr.Body)
	}
	return false
}

// closedByGitfleet reports whether nobody decided about a pull request or an issue that is closed.
func closedByGitfleet(pr *forge.PullRequest) bool {
	return pr.State == forge.Closed && endedByGitfleet(pr.Body)
}

// create makes the branch and the pull request of a change. Whatever of that is there
// already, because gitfleet was killed or another daemon was faster, is not made again.
func (p *Proposer) create(ctx context.Context, o *offer, branch string, now time.Time) (*forge.PullRequest, error) {
	faults.At("before branch")
	state, err := p.cfg.Branches.Publish(ctx, p.commit(o, branch, now))
	faults.At("after branch")
	if err != nil {
		return nil, err
	}
	if state.Others {
		return nil, fmt.Errorf("branch %s has commits of other people and no pull request: open one, or delete the branch", branch)
	}
	pr, err := p.cfg.Forge.OpenPullRequest(ctx, forge.Proposal{Base: p.cfg.Base, Branch: branch, Title: o.title(), Body: o.body(p.cfg.Fleet, nil), Labels: o.labels()})
	faults.At("after pull request")
	if err != nil && pr.Number == 0 {
		return nil, err
	}
	if err != nil {
		p.cfg.Log.Warn("labels of a pull request not set", "url", pr.URL, "err", err)
	}
	p.cfg.Log.Info("a drift is offered as a pull request", "url", pr.URL, "object", o.id.String())
	return &pr, nil
}

// commit returns the commit for the branch of an offer.
func (p *Proposer) commit(o *offer, branch string, now time.Time) gitsource.BranchCommit {
	marker := trailer(changeHash(branch))
	c := gitsource.BranchCommit{Branch: branch, Base: p.known.commit, Files: map[string][]byte{}, Message: o.message(marker), Marker: marker, Time: now}
	for _, f := range o.changes {
		c.Files[f.Path] = f.After
	}
	return c
}

// sameText reports whether two bodies are equal except for changes that a forge makes.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(b)
}

// update updates the branch and the body of an open pull request or issue.
func (p *Proposer) update(ctx context.Context, o *offer, c *change, now time.Time) error {
	pr := p.open[c.branch]
	if !reflect.DeepEqual(c.published, o.changes) && !isIssue(c.branch) {
		state, err := p.cfg.Branches.Publish(ctx, p.commit(o, c.branch, now))
		if err == nil && state.Outdated {
			err = p.commentOnce(ctx, pr, outdatedMarker, outdatedComment)
		}
		if err != nil {
			return err
		}
		c.published = o.changes
	}
	var waiting []*offer
	if c.branch == p.newest() {
		waiting = p.listWaiting(now)
	}
	body := o.body(p.cfg.Fleet, waiting)
	if sameText(pr.Body, body) {
		return nil
	}
	if err := p.edit(ctx, pr, body); err != nil {
		return err
	}
	pr.Body = body
	p.open[c.branch] = pr
	return nil
}

// commentOnce adds a comment to a pull request, unless it already has it.
func (p *Proposer) commentOnce(ctx context.Context, pr forge.PullRequest, marker, text string) error {
	found, err := p.cfg.Forge.FindComment(ctx, pr.Number, marker)
	if err != nil || found != nil {
		return err
	}
	_, err = p.cfg.Forge.AddComment(ctx, pr.Number, text+"\n\n"+marker+"\n")
	return err
}
