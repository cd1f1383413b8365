package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/placement"
)

// A Health is what a member says of the content it was assigned.
type Health int

// The states of health.
const (
	// Unknown: nothing is said yet, or nothing of availability.
	Unknown Health = iota
	// Unavailable: applied and not available. It may become so by itself, unless
	// Seen.Failure says otherwise.
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
	// Partial says that Health leaves out objects that a person has suspended.
	Partial bool
	// Failure is why a cluster that is Unavailable will not become available by
	// itself, or what failed where Health is Failed; empty while an Unavailable one
	// makes progress.
	Failure string
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

// failsAt is when a cluster that is making progress will have failed for taking too
// long; zero if never.
func (b *Binding) failsAt(in *Input) time.Time {
	if b.health() != Unavailable || b.Seen.Failure != "" || in.AvailableTimeout == 0 || b.aside() {
		return time.Time{}
	}
	return b.Seen.Since.Add(in.AvailableTimeout)
}

// failure tells whether what the cluster holds has failed, and why. A cluster that
// is making progress has not.
func (b *Binding) failure(in *Input) (Failure, bool) {
	f := Failure{Cluster: b.Cluster, Reason: b.Seen.Failure}
	switch at := b.failsAt(in); {
	case b.aside():
		return Failure{}, false
	case !at.IsZero() && !at.After(in.Now):
		f.TimedOut, f.Reason = true, fmt.Sprintf("not available after %s", duration.HumanDuration(in.AvailableTimeout))
		return f, true
	case b.health() == Unavailable:
		return f, f.Reason != ""
	}
	return f, b.health() == Failed || b.health() == DiffFailed
}

// judge writes down whether what a wanted cluster holds has failed, or when it will
// have.
func (in *Input) judge(p *Plan, b *Binding) {
	if b.Unscheduled {
		return
	}
	if f, failed := b.failure(in); failed {
		p.Failed = append(p.Failed, f)
		return
	}
	p.wake(b.failsAt(in))
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
