package proposal

import (
	"context"
	"fmt"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// isJoining reports whether a change is to be offered with others, and nothing was decided about it before.
func isJoining(f *follower, c *change, s *offerState, now time.Time) bool {
	return s.name == "" && s.neverOffered && f.putBack[c.hash] == "" && groupOf(f, c) != "" && (s.asked || !s.due(f.tracker.cfg.MinAge).After(now))
}

// join opens the pull request of a placement with all changes that are due, or adds them to it.
func join(f *follower, ctx context.Context, c *change, s *offerState, now time.Time) error {
	placement := groupOf(f, c)
	hash := groupHash(f.tracker.cfg.Fleet, placement)
	pr := f.findOpen(hash)
	if pr == nil && f.atLimit(s) {
		return nil
	}
	var changes []*change
	if pr != nil {
		if mayListAny(pr.Body, f.known.unanswered) {
			s.waits = "not all clusters with changes in " + pr.URL + " have answered yet"
			return nil
		}
		changes = offeredBy(f, pr.name)
	}
	for _, other := range f.changesByAge() {
		if groupOf(f, other) == placement && isJoining(f, other, f.states[other.hash], now) {
			changes = append(changes, other)
		}
	}
	for _, c := range changes[min(len(changes), maxGrouped):] {
		f.states[c.hash].waits = fmt.Sprintf("the pull request of %s has %d changes, which is the most", placement, maxGrouped)
	}
	g, err := combine(f, placement, changes[:min(len(changes), maxGrouped)])
	if err != nil || g == nil {
		return err
	}
	if pr == nil {
		branch := f.free[hash]
		if branch == "" { // it is found by the next search
			s.neverOffered = false
			return nil
		}
		if pr, err = f.create(ctx, g, branch, now); err != nil {
			return err
		}
		delete(f.free, hash)
		f.open[branch] = *pr
		f.written[branch] = written{files: g.files, message: f.commit(g, branch, now).Message}
	}
	for _, c := range g.changes {
		s := f.states[c.hash]
		s.found(*pr)
		if s.askedBy != "" {
			f.record(history.ProposalOpened, heldItem{change: c}, s.askedBy, s.URL)
			s.askedBy = ""
		}
	}
	return nil
}

// leavesGroup reports whether a change cannot be part of its pull request any more, since no edit makes it or a user wants it back.
func leavesGroup(f *follower, c *change, s *offerState, _ time.Time) bool {
	return c.isIn(s.name) && s.State == forge.Open && (c.reason != nil || f.putBack[c.hash] != "")
}

// leaveGroup makes a change leave its pull request, which is updated afterwards.
func leaveGroup(f *follower, _ context.Context, _ *change, s *offerState, _ time.Time) error {
	s.offerAnew()
	return nil
}
