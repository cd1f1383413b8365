package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// resolve sends the decisions about all held drifts.
func (p *Proposer) resolve(now time.Time) {
	all, held := resolutions{}, newHeldChanges(now, p.report)
	for _, v := range p.known.verdicts {
		it, putBack := p.verdict(v)
		all.add(v.of, putBack, it.message, now)
		held.items = append(held.items, it)
	}
	for _, o := range p.known.offers {
		c := p.changes[o.hash]
		if c == nil {
			continue
		}
		state := c.heldState()
		putBack, message := p.decision(o, c)
		switch by := p.putBack[o.hash]; {
		case by != "":
			putBack, message = true, putBackMessage(by)
		case c.branch == "" && !p.canOffer(o, now) && (c.neverOffered || p.cfg.Forge == nil):
			state = Inexpressible
			putBack, message = p.withoutIssue(o, c, now)
		case p.cfg.Forge == nil:
			putBack, message = false, "left as it is; not offered as a pull request, since no forge is configured"
		}
		all.add(o, putBack, message, now)
		held.items = append(held.items, heldItem{o, state, c.url, message})
	}
	p.held.Store(held)
	if !maps.EqualFunc(p.resolved, all, maps.Equal[ledger.Resolutions, ledger.Resolutions]) {
		p.resolved = all
		p.cfg.Resolve(all)
	}
}

// verdict returns the decision about a change that is not offered.
func (p *Proposer) verdict(v verdict) (it heldItem, putBack bool) {
	it = heldItem{v.of, v.state, "", v.message}
	if c := p.changes[v.of.hash]; c != nil && c.branch != "" && v.state == Unsettled && c.heldState() != Closed {
		it.state, it.url = c.heldState(), c.url
		if v.message == errNotTried.Error() {
			_, it.message = p.decision(v.of, c)
		}
	}
	if by := p.putBack[v.of.hash]; by != "" {
		it.message = putBackMessage(by)
		return it, true
	}
	return it, false
}

// keepsObject reports whether a pull request or issue of the change keeps the object as it is until a
// user decides: it is open, or has the hold label.
func (c *change) keepsObject() bool {
	return c.state == forge.Open || c.state == forge.Closed && c.hold
}

// decision returns the decision about a change.
func (p *Proposer) decision(o *offer, c *change) (putBack bool, message string) {
	what, reason := "a pull request", ""
	switch {
	case o.reason != nil && c.branch != "" && !isIssue(c.branch):
		reason = "; the pull request is not kept up to date, since no edit of the files makes the change any more"
	case o.reason != nil:
		what, reason = "an issue", fmt.Sprintf("; no edit of the files makes the change: %v", o.reason)
	}
	problem := cmp.Or(p.retry.String(), c.retry.String())
	if isIssue(c.branch) || c.branch == "" && o.reason != nil {
		problem = cmp.Or(problem, p.issues.String())
	}
	switch c.state {
	case forge.Open:
		message = "offered as " + c.url
		if problem != "" {
			message += "; not followed " + problem
		}
	case forge.Merged:
		message = c.url + " was merged, and its commit is not in force here yet"
	case forge.Closed:
		switch {
		case c.hold:
			message = c.url + " has the label " + holdLabel
			if problem != "" {
				message += "; not followed " + problem
			}
		case isIssue(c.branch):
			return true, c.url + " was closed"
		default:
			return true, c.url + " was closed without merging"
		}
	default:
		message = fmt.Sprintf("offered as %s once it has lasted for %s", what, p.cfg.MinAge)
		if problem != "" {
			message = "not offered as " + what + " " + problem
		} else if c.waits != "" {
			message = c.waits
		}
	}
	return false, "left as it is; " + message + reason
}

// withoutIssue returns the decision about a change that is offered neither as a pull request
// nor as an issue.
func (p *Proposer) withoutIssue(o *offer, c *change, now time.Time) (putBack bool, message string) {
	if o.partial && now.Sub(c.manualSince) < p.cfg.MinAge {
		return false, fmt.Sprintf("left as it is until it has lasted for %s, in case other clusters have the same change: %v", p.cfg.MinAge, o.reason)
	}
	message = fmt.Sprintf("put back, since it cannot be offered as a pull request: %v", o.reason)
	if p.cfg.Forge != nil {
		p.missed = true
		message += "; nor as an issue, since issues are disabled in the repository"
	}
	return true, message
}
