package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/poll"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A request is a user's request about a held change.
type request struct {
	do func(ctx context.Context, it heldItem, by string, now time.Time) (done func() string, err error)
	// name is the name of the change, or its beginning.
	name, by string
	done     chan response // capacity one
	// number is the pull request on which it was made; zero if it was not made on one.
	number int64
}

// A response is the result of a request.
type response struct {
	text string
	err  error
}

// Close closes the pull request of a held change without merging it, or its issue, so that the
// change is reverted. If there is neither, it is reverted at once. The beginning of the
// name is enough if it is unique; by is the user.
func (p *Proposer) Close(ctx context.Context, name, by string) (answer string, err error) {
	return p.ask(ctx, request{do: p.close, name: name, by: by, done: make(chan response, 1)})
}

// Open opens the pull request or issue of a held change now, even if it has not lasted long
// enough, enough are open, or an earlier one was closed without being merged. The arguments are
// those of Close.
func (p *Proposer) Open(ctx context.Context, name, by string) (answer string, err error) {
	return p.ask(ctx, request{do: p.openNow, name: name, by: by, done: make(chan response, 1)})
}

// Revert does what Close does, for a user who asks for it on a pull request. It is refused if the change is offered
// elsewhere by now: so a request that is repeated never ends the offer of the same change when somebody makes it again.
func (p *Proposer) Revert(ctx context.Context, name string, number int64, by string) (answer string, err error) {
	return p.ask(ctx, request{do: p.close, name: name, by: by, done: make(chan response, 1), number: number})
}

// Hold adds the label that keeps the object of a held change as it is to its pull request, or removes it. The other
// arguments are those of Revert.
func (p *Proposer) Hold(ctx context.Context, name string, number int64, by string, on bool) (answer string, err error) {
	do := func(ctx context.Context, it heldItem, by string, now time.Time) (func() string, error) {
		return p.hold(ctx, it, by, on, now)
	}
	return p.ask(ctx, request{do: do, name: name, by: by, done: make(chan response, 1), number: number})
}

// Follows reports whether there is a pull request or an issue that people may still decide about. Any goroutine may call it.
func (p *Proposer) Follows() bool {
	held := p.held.Load()
	return held != nil && slices.ContainsFunc(held.items, func(it heldItem) bool { return it.url != "" })
}

// ask makes Run handle a request.
func (p *Proposer) ask(ctx context.Context, r request) (string, error) {
	select {
	case p.requests <- r:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case answer := <-r.done:
		return answer.text, answer.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// execute executes a request. Once the forge and the members are updated, done returns what has become of it.
func (p *Proposer) execute(ctx context.Context, r request, now time.Time) (done func() string, err error) {
	it, err := p.find(r.name, r.number)
	if err != nil {
		return nil, err
	}
	if r.number != 0 {
		if err := p.isOfferedBy(it.hash, r.number); err != nil {
			return nil, err
		}
	}
	done, err = r.do(ctx, it, r.by, now)
	if err != nil {
		if isGeneral(err) {
			p.follower.tracker.recordResult(ctx, err, now)
		}
		return nil, &forgeError{err}
	}
	return done, nil
}

// isOfferedBy refuses a request on a pull request that does not offer the change, as far as is known.
func (p *Proposer) isOfferedBy(hash string, number int64) error {
	s := p.follower.states[hash]
	switch pr := p.follower.findOpen(hash); {
	case pr != nil && (pr.isIssue() || pr.Number != number):
		return refuse("this change is offered by %s now", pr.URL)
	case pr != nil:
		return nil
	case s != nil && s.name != "" && (s.isIssue() || s.Number != number):
		return refuse("this change is offered by %s now", s.URL)
	case s != nil && s.name != "":
		return nil
	case s != nil && s.neverOffered:
		return refuse("the change that is held now is a later one, which is not offered yet")
	}
	p.follower.woken = true
	return refuseForNow("it is not known yet what offers this change; try again in a moment")
}

// A forgeError is an error of the forge as people read it, without the address that was asked.
type forgeError struct{ error }

func (e *forgeError) Error() string { return forge.Reason(e.error) }
func (e *forgeError) Unwrap() error { return e.error }

// find returns the held change that a name is of. If it is that of a group, it returns one of the changes of its pull request.
func (p *Proposer) find(name string, number int64) (heldItem, error) {
	held := p.held.Load()
	if held == nil {
		return heldItem{}, refuseForNow("held drift is not known yet; try again in a moment")
	}
	var names []string
	for _, it := range held.items {
		names = append(names, it.hash)
	}
	for _, it := range held.items {
		if s := p.follower.states[it.hash]; s != nil && it.isIn(s.name) && branchHash(s.name) == name && (number == 0 || s.Number == number) {
			it.whole = countOffered(&p.follower, s.name)
			return it, nil
		}
	}
	i, err := findName(name, names)
	if _, unknown := errors.AsType[*status.UnknownError](err); unknown && p.follower.known.lost {
		return heldItem{}, refuseForNow("the ledger was lost, and not all clusters have answered since; try again later")
	}
	if err != nil {
		return heldItem{}, err
	}
	return held.items[i], nil
}

// countOffered counts the changes that a pull request offers.
func countOffered(f *follower, branch string) (n int) {
	for _, s := range f.states {
		if s.name == branch {
			n++
		}
	}
	return n
}

// subject names the object, or all of those that a request is about.
func (it heldItem) subject() string {
	if it.whole > 1 {
		return markdown.Count(it.whole, "change") + " of " + it.drifts[0].Placement
	}
	return it.id.String()
}

// checkRetryAfter refuses a request that needs the forge while the forge asks to send no requests.
func (p *Proposer) checkRetryAfter(now time.Time) error {
	if wait := p.follower.tracker.retry.ServerDelay(now); wait > 0 {
		return refuseForNow("the forge accepts no requests for another %s, until %s: try again then", wait.Round(time.Second), now.Add(wait).UTC().Format(time.RFC3339))
	}
	return nil
}

// close implements Close.
func (p *Proposer) close(ctx context.Context, it heldItem, by string, now time.Time) (func() string, error) {
	where := markdown.Count(len(it.drifts), "cluster")
	switch it.state {
	case Open:
		s := p.follower.states[it.hash]
		if others := countOffered(&p.follower, s.name) - 1; it.isIn(s.name) && it.whole == 0 && others > 0 && !s.onHold() {
			p.follower.putBack[it.hash] = by
			p.follower.tracker.cfg.Log.Info("a held drift is put back on request, without the others of its pull request", "url", s.URL, "object", it.id.String(), "by", by)
			p.follower.record(history.ProposalClosed, it, by, "put back without the others in "+s.URL)
			return func() string {
				return fmt.Sprintf("%s will be put back on %s, and leaves %s, which keeps %s", it.id, where, s.URL, markdown.Count(others, "other change"))
			}, nil
		}
		pr, listed := p.follower.open[s.name]
		if !listed {
			return nil, refuseForNow("%s is not listed as open; try again in a moment", s.URL)
		}
		if s.onHold() {
			return nil, refuse("%s has the label %s, which keeps the object as it is: remove the label first", s.URL, holdLabel)
		}
		if err := p.checkRetryAfter(now); err != nil {
			return nil, err
		}
		current, err := p.follower.tracker.current(ctx, s.thread)
		if err != nil {
			return nil, err
		}
		if current == nil || current.State != forge.Open || current.onHold() {
			p.follower.listed = time.Time{} // reads its new state at once
			return nil, refuse("%s is not open any more, or has the label %s; see gitfleet proposals show", s.URL, holdLabel)
		}
		comment := "Closed by " + markdown.Code(by) + ": the object is put back to what is in Git."
		if it.whole > 1 {
			comment = "Closed by " + markdown.Code(by) + ": the objects are put back to what is in Git."
		}
		if err := p.follower.tracker.end(ctx, pr, comment, current.Body); err != nil {
			return nil, err
		}
		p.follower.tracker.cfg.Log.Info("a proposal of a drift was closed on request", "url", s.URL, "object", it.id.String(), "by", by)
		p.follower.record(history.ProposalClosed, it, by, s.URL)
		p.follower.listed = time.Time{} // reads its new state at once
		on := " on " + where
		if it.whole > 1 {
			on = ""
		}
		return func() string { return fmt.Sprintf("%s is closed; %s will be put back%s", s.URL, it.subject(), on) }, nil
	case Waiting, Reported, Inexpressible, Expired:
		p.follower.putBack[it.hash] = by
		p.follower.tracker.cfg.Log.Info("a held drift is put back on request", "object", it.id.String(), "by", by)
		p.follower.record(history.ProposalClosed, it, by, "put back without having been offered")
		return func() string { return fmt.Sprintf("%s will be put back on %s", it.id, where) }, nil
	case OnHold:
		return nil, refuse("%s has the label %s, which keeps the object as it is: remove the label", it.url, holdLabel)
	}
	return nil, refuse("there is nothing to close: %s", it.message)
}

// hold implements Hold.
func (p *Proposer) hold(ctx context.Context, it heldItem, by string, on bool, now time.Time) (func() string, error) {
	s := p.follower.states[it.hash]
	if s == nil || s.name == "" {
		return nil, refuse("it has no pull request or issue yet: %s", it.message)
	}
	if err := p.checkRetryAfter(now); err != nil {
		return nil, err
	}
	pr, err := p.follower.tracker.current(ctx, s.thread)
	if err != nil {
		return nil, err
	}
	has := pr != nil && pr.onHold()
	switch {
	case pr == nil || pr.State == forge.Merged || closedByGitfleet(pr):
		return nil, refuse("nothing is held any more by %s", s.URL)
	case has == on && on:
		return nil, refuse("%s has the label %s already", s.URL, holdLabel)
	case has == on:
		return nil, refuse("%s does not have the label %s", s.URL, holdLabel)
	}
	edit, event, text := forge.Edit{AddLabels: []string{holdLabel}}, history.ProposalHeld, "%s has the label %s now, which keeps %s as it is"
	if !on {
		edit, event, text = forge.Edit{RemoveLabels: []string{holdLabel}}, history.ProposalReleased, "%s does not have the label %s any more, which kept %s as it is"
	}
	if err := p.follower.tracker.cfg.Forge.Edit(ctx, pr.Thread, edit); err != nil {
		return nil, err
	}
	p.follower.tracker.cfg.Log.Info("the label that keeps an object as it is was set or removed on request", "url", s.URL, "object", it.id.String(), "held", on, "by", by)
	p.follower.record(event, it, by, s.URL)
	p.follower.listed = time.Time{} // reads its new state at once
	return func() string { return fmt.Sprintf(text, s.URL, holdLabel, it.subject()) }, nil
}

// openNow implements Open.
func (p *Proposer) openNow(ctx context.Context, it heldItem, by string, now time.Time) (func() string, error) {
	s := p.follower.states[it.hash]
	switch {
	case it.state == Reported:
		return nil, refuse("its drift mode is %q, which offers nothing; set the mode propose", it.drifts[0].Rule)
	case it.state == Inexpressible || it.state == Unsettled || it.state == Merged || s == nil:
		return nil, refuse("it cannot be offered as a pull request: %s", it.message)
	case p.follower.tracker.cfg.Forge == nil:
		return nil, refuse("no forge is configured, so nothing can be offered as a pull request")
	case it.state == Open:
		return nil, refuse("%s is open already", it.url)
	}
	if err := p.checkRetryAfter(now); err != nil {
		return nil, err
	}
	if it.state == Closed || it.state == OnHold || it.state == Expired {
		if err := p.supersede(ctx, it.hash, s); err != nil {
			return nil, err
		}
	}
	p.follower.tracker.cfg.Log.Info("a drift is to be offered on request", "object", it.id.String(), "by", by)
	s.asked, s.askedBy, s.retry = true, by, poll.Backoff{}
	delete(p.follower.putBack, it.hash)
	return func() string {
		if s.State == forge.Open {
			return "offered as " + s.URL
		}
		_, message := p.decideOffered(it.change, s)
		return message
	}, nil
}

// supersede records on a closed pull request or issue that its rejection does not count any
// more, so that another one is opened for the change, also after a restart.
func (p *Proposer) supersede(ctx context.Context, hash string, s *offerState) error {
	pr, err := p.follower.tracker.current(ctx, s.thread)
	if err != nil {
		return err
	}
	if pr != nil && pr.State == forge.Closed && !endedByGitfleet(pr.Body) {
		p.follower.tracker.allIssues = nil
		body := markEnded(pr.Body)
		if _, grouped := offeredIn(pr.Body); grouped { // the others stay rejected
			body = withoutOffer(pr.Body, hash)
		}
		if err := p.follower.tracker.cfg.Forge.Edit(ctx, pr.Thread, forge.Edit{Body: body}); err != nil {
			return err
		}
		delete(p.follower.ended, s.name)
	}
	*s = offerState{since: s.since, manualSince: s.manualSince}
	return nil
}
