package proposal

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/reconciler/poll"
)

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

// keepsObject reports whether a pull request or issue of the change keeps the object as it is until a
// user decides: it is open, has the hold label, or has expired.
func (s *offerState) keepsObject() bool {
	return s.State == forge.Open || s.State == forge.Closed && (s.onHold() || s.expired())
}

// heldState returns the state of a change that is offered or will be.
func (s *offerState) heldState() State {
	switch {
	case s.State == forge.Open:
		return Open
	case s.State == forge.Merged:
		return Merged
	case s.State == forge.Closed && s.onHold():
		return OnHold
	case s.State == forge.Closed && s.expired():
		return Expired
	case s.State == forge.Closed:
		return Closed
	}
	return Waiting
}

// asksAgain reports whether a pull request that is closed may still keep an object as it
// is.
func (s *offerState) asksAgain() bool { return s.State == forge.Closed && (s.onHold() || s.recheck) }

// waitsFor returns when a change is due to be offered.
func waitsFor(c *change, s *offerState, minAge time.Duration) time.Time {
	if c.rollback != nil {
		return s.since
	}
	return s.due(minAge)
}
