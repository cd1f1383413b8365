package rollout

import (
	"time"

	"github.com/gitfleet/gitfleet/placement"
)

// A Health is what a member says of the content it was assigned.
type Health int

// The states of health.
const (
	// Unknown: nothing is said yet, or nothing of availability.
	Unknown Health = iota
	// Unavailable: being applied, or applied and not available. It may become
	// so by itself.
	Unavailable
	// Failed: an override, an envelope or an object cannot be carried out.
	Failed
	// Available: applied and available, every object.
	Available
	// Untracked: as Available, but of some objects nobody can tell. It counts
	// as available after unavailablePeriodSeconds.
	Untracked
	// DiffReported: compared, in the mode that never writes.
	DiffReported
	// DiffFailed: not everything could be compared.
	DiffFailed
)

// Seen is a member's word on one revision.
type Seen struct {
	// Hash is of the revision it speaks of. If that is not the assigned one,
	// nothing is known.
	Hash   string
	Health Health
	// Since is when Health became what it is.
	Since time.Time
}

// health is what is known of what the cluster is assigned.
func (b *Binding) health() Health {
	if !b.Released() || b.Seen.Hash != b.Assigned.Hash {
		return Unknown
	}
	return b.Seen.Health
}

// down reports whether the cluster is known not to be available: updating it
// cannot make it less so.
func (b *Binding) down() bool {
	h := b.health()
	return h == Unavailable || h == Failed || h == DiffFailed
}

// canBeReady reports whether the cluster may become available without being
// given anything else.
func (b *Binding) canBeReady() bool {
	switch b.health() {
	case Failed, DiffReported, DiffFailed:
		return false
	}
	return b.Released()
}

// ready reports whether the cluster counts as available.
func (b *Binding) ready(in *Input) bool {
	at := b.readyAt(in)
	return !at.IsZero() && !at.After(in.Now)
}

// readyAt is when the cluster counts, or will count, as available without
// anything being reported; zero if never.
func (b *Binding) readyAt(in *Input) time.Time {
	if b.aside() {
		return time.Time{}
	}
	switch b.health() {
	case Available, DiffReported:
		return in.Now
	case Untracked:
		return b.Seen.Since.Add(period(in.Strategy))
	}
	return time.Time{}
}

// aside reports whether nothing can be done about the cluster now.
func (b *Binding) aside() bool { return b.Unreachable || b.Suspended != "" }

// latest reports whether the cluster holds the newest content. What cannot be
// told is not newer.
func (b *Binding) latest() bool {
	return b.Released() && (b.Latest == placement.Revision{} || b.Assigned.Hash == b.Latest.Hash)
}
