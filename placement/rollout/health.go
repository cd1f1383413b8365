package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

const defaultPeriod = 60 * time.Second

// health is the reported health of the assigned revision.
func (b *Target) health() Health {
	if !b.HasRevision() || b.Seen.Hash != b.Assigned.Hash {
		return Unknown
	}
	return b.Seen.Health
}

// knownUnavailable reports whether the cluster is known to be unavailable at this moment.
func (b *Target) knownUnavailable() bool {
	h := b.health()
	return h == Unavailable || h == Failed || h == DiffFailed
}

// isOutsideBudget reports whether the cluster is updated or removed outside of the budget: it has
// not counted as available since its content was assigned, so that it has a place in the budget
// already, or it has been unavailable by itself for long enough. A moment's unavailability, or one
// that gitfleet has caused, is no such reason: the content may be as good as ever, and the next one
// untried.
func (b *Target) isOutsideBudget(in *Input) bool {
	if b.knownUnavailable() && !b.WasAvailable || b.health() == DiffFailed { // with ReportDiff nothing is written
		return true
	}
	at := b.outsideBudgetAt(in)
	return !at.IsZero() && !at.After(in.Now)
}

// longestProgress is how long what gitfleet has written counts as in progress if
// AvailableTimeout sets no limit.
const longestProgress = 10 * time.Minute

// outsideBudgetAt is when a cluster whose content was available has been unavailable for long
// enough; zero if not without a new report. What gitfleet has written must have failed.
func (b *Target) outsideBudgetAt(in *Input) time.Time {
	if !b.knownUnavailable() || b.blocked() || b.Seen.DownSince.IsZero() {
		return time.Time{}
	}
	at := b.Seen.DownSince.Add(in.RepairAfter)
	if _, failed := b.failure(in); b.Seen.Writing && !failed {
		ends := b.failsAt(in)
		if ends.IsZero() {
			ends = b.Seen.Since.Add(longestProgress)
		}
		if ends.After(at) {
			return ends
		}
	}
	return at
}

// brieflyUnavailable reports whether the cluster was available, and counts as unavailable in
// the budget although it has not been so for long enough.
func (b *Target) brieflyUnavailable(in *Input) bool {
	return b.knownUnavailable() && !b.isOutsideBudget(in)
}

// keepsPlace reports whether a cluster that is unreachable or suspended counts as unavailable all the
// same, because that happened a moment ago, during its update.
func (b *Target) keepsPlace(in *Input) bool {
	return b.blocked() && b.Risked && b.HasRevision() && in.Now.Before(b.BlockedSince.Add(in.RepairAfter))
}

// failsAt is when a cluster that makes progress reaches the availability timeout; zero if
// never.
func (b *Target) failsAt(in *Input) time.Time {
	if b.health() != Unavailable || b.Seen.Failure != "" || in.AvailableTimeout == 0 || b.blocked() {
		return time.Time{}
	}
	return b.Seen.Since.Add(in.AvailableTimeout)
}

// failure returns whether the assigned content has failed, and why. A cluster that makes
// progress has not failed.
func (b *Target) failure(in *Input) (Failure, bool) {
	f := Failure{Cluster: b.Cluster, Reason: b.Seen.Failure}
	switch at := b.failsAt(in); {
	case b.blocked():
		return Failure{}, false
	case !at.IsZero() && !at.After(in.Now):
		f.TimedOut, f.Reason = true, fmt.Sprintf("not available after %s", duration.HumanDuration(in.AvailableTimeout))
		return f, true
	case b.health() == Unavailable, b.health() == Unknown && b.Seen.Hash == b.Assigned.Hash:
		return f, f.Reason != ""
	}
	return f, b.health() == Failed || b.health() == DiffFailed
}

// canBeReady reports whether the cluster may become available without an update.
func (b *Target) canBeReady() bool {
	switch b.health() {
	case Failed, DiffReported, DiffFailed:
		return false
	}
	return b.HasRevision()
}

// ready reports whether the cluster counts as available.
func (b *Target) ready(in *Input) bool {
	at := b.readyAt(in)
	return !at.IsZero() && !at.After(in.Now)
}

// readyAt is when the cluster counts, or will count, as available without a new report; zero if
// never.
func (b *Target) readyAt(in *Input) time.Time {
	if b.blocked() {
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

// blocked reports whether nothing can be done on the cluster now.
func (b *Target) blocked() bool { return b.Unreachable || b.Suspended != "" }

// latest reports whether the cluster has the newest content. An unknown latest revision counts
// as the same.
func (b *Target) latest() bool {
	return b.HasRevision() && (b.Latest == placement.Revision{} || b.Assigned.Hash == b.Latest.Hash)
}

// period is how long a cluster must be applied before resources without a health check count as
// available.
func period(s api.RolloutStrategy) time.Duration {
	if s.RollingUpdate == nil || s.RollingUpdate.UnavailablePeriodSeconds == nil {
		return defaultPeriod
	}
	return time.Duration(*s.RollingUpdate.UnavailablePeriodSeconds) * time.Second
}
