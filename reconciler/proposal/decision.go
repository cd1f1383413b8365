package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// sendDecisions sends the decisions about all held drifts to the members.
func (p *Proposer) sendDecisions(now time.Time) {
	all, held := decisions{}, newHeldChanges(now, p.report)
	for _, n := range p.follower.known.notOffered {
		if n.change.rollback != nil {
			continue // no cluster waits for it
		}
		it, putBack := p.decideNotOffered(n)
		all.add(n.change, putBack, it.message, now)
		held.items = append(held.items, it)
	}
	for _, c := range p.follower.known.offers {
		s := p.follower.states[c.hash]
		if s == nil || c.rollback != nil {
			continue
		}
		state := s.heldState()
		putBack, message := p.decideOffered(c, s)
		switch by := p.follower.putBack[c.hash]; {
		case by != "":
			putBack, message = true, putBackMessage(by)
		case s.name == "" && !p.follower.canOffer(c, now) && (s.neverOffered || p.follower.tracker.cfg.Forge == nil):
			state = Inexpressible
			putBack, message = p.decideInexpressible(c, s, now)
		case p.follower.tracker.cfg.Forge == nil:
			putBack, message = false, "left as it is; not offered as a pull request, since no forge is configured"
		}
		all.add(c, putBack, message, now)
		held.items = append(held.items, heldItem{change: c, state: state, url: s.URL, message: message, together: offeredWith(&p.follower, c, s)})
	}
	p.held.Store(held)
	if !maps.EqualFunc(p.lastSent, all, maps.Equal[protocol.DriftDecisions, protocol.DriftDecisions]) {
		p.lastSent = all
		p.follower.tracker.cfg.SetDriftDecisions(all)
	}
}

// decideNotOffered returns the decision about a change that is not offered.
func (p *Proposer) decideNotOffered(n notOffered) (it heldItem, putBack bool) {
	it = heldItem{change: n.change, state: n.state, message: n.message}
	if s := p.follower.states[n.change.hash]; s != nil && s.name != "" && n.state == Unsettled && s.heldState() != Closed {
		it.state, it.url = s.heldState(), s.URL
		if n.message == errNotTried.Error() {
			_, it.message = p.decideOffered(n.change, s)
		}
	}
	if by := p.follower.putBack[n.change.hash]; by != "" {
		it.message = putBackMessage(by)
		return it, true
	}
	return it, false
}

// decideOffered returns the decision about a change that is offered or will be.
func (p *Proposer) decideOffered(c *change, s *offerState) (putBack bool, message string) {
	what, reason := "a pull request", ""
	switch {
	case c.reason != nil && s.name != "" && !s.isIssue():
		reason = "; the pull request is not kept up to date, since no edit of the files makes the change any more"
	case c.reason != nil:
		what, reason = "an issue", fmt.Sprintf("; no edit of the files makes the change: %v", c.reason)
	}
	problem := cmp.Or(p.follower.tracker.retry.String(), s.retry.String())
	if s.isIssue() || s.name == "" && c.reason != nil {
		problem = cmp.Or(problem, p.follower.tracker.issues.String())
	}
	switch s.State {
	case forge.Open:
		message = "offered as " + s.URL
		if problem != "" {
			message += "; not followed " + problem
		}
	case forge.Merged:
		message = s.URL + " was merged, and its commit is not in force here yet"
	case forge.Closed:
		switch {
		case s.onHold():
			message = s.URL + " has the label " + holdLabel
			if problem != "" {
				message += "; not followed " + problem
			}
		case s.expired():
			message = s.URL + " has expired: nobody decided about it; see gitfleet proposals"
		case s.isIssue():
			return true, s.URL + " was closed"
		default:
			return true, s.URL + " was closed without merging"
		}
	default:
		message = fmt.Sprintf("offered as %s once it has lasted for %s", what, p.follower.tracker.cfg.MinAge)
		if problem != "" {
			message = "not offered as " + what + " " + problem
		} else if s.waits != "" {
			message = s.waits
		}
	}
	return false, "left as it is; " + message + reason
}

// decideInexpressible returns the decision about a change that can be offered neither as a pull request
// nor as an issue.
func (p *Proposer) decideInexpressible(c *change, s *offerState, now time.Time) (putBack bool, message string) {
	if c.addition {
		return false, fmt.Sprintf("left as it is and only reported, since it can be offered neither as a pull request nor as an issue: %v", c.reason)
	}
	if c.partial && now.Sub(s.manualSince) < p.follower.tracker.cfg.MinAge {
		return false, fmt.Sprintf("left as it is until it has lasted for %s, in case other clusters have the same change: %v", p.follower.tracker.cfg.MinAge, c.reason)
	}
	message = fmt.Sprintf("put back, since it cannot be offered as a pull request: %v", c.reason)
	if p.follower.tracker.cfg.Forge != nil {
		p.follower.tracker.missed = true
		message += "; nor as an issue, since issues are disabled in the repository"
	}
	return true, message
}

func putBackMessage(by string) string { return "put back, as " + by + " has asked" }
