package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An Input is the state of one placement at one time.
type Input struct {
	// Wanted is how many clusters the policy asks for, even if fewer are selected. It is
	// [placement.Outcome.Wanted].
	Wanted int
	// Strategy may lack its defaults.
	Strategy api.RolloutStrategy
	// Targets are at most one for each cluster, in any order.
	Targets []Target
	Now     time.Time

	// MaxUnreachable is how many unreachable clusters, or which share of the wanted ones, do
	// not count as unavailable; nil means all.
	MaxUnreachable *intstr.IntOrString
	// StopOnFailure stops the rollout when an update fails on a cluster that was available
	// before.
	StopOnFailure bool
	// Stops are the stops of the last plan, without those that a user has resumed since.
	Stops []EarlierStop
	// AvailableTimeout is how long a cluster may take to become available before its update
	// counts as failed; zero means no limit.
	AvailableTimeout time.Duration
	// RepairAfter is how long a cluster has to be unavailable, for no reason of gitfleet's, before
	// it is updated or removed outside of the budget. A cluster that becomes unreachable or suspended during
	// its update keeps its place in the budget for that time.
	RepairAfter time.Duration
	// Run is the staged update run in force; nil if there is none, or the strategy is not External.
	Run *StagedRun
	// Resumed is when a user last resumed the rollout: earlier updates no longer stop it.
	Resumed time.Time
}

// A Target is a cluster of the placement with its observed state. A binding that is Removing is
// Unscheduled too: a cluster that is selected again while it is being removed gets a new binding.
type Target struct {
	placement.Binding
	// Latest is the newest revision for the cluster; zero if the cluster is not selected or the
	// revision is not known.
	Latest placement.Revision
	// Proven is the revision of the last content that was available on every cluster; zero if
	// there is none. A cluster that joins a stopped rollout gets it.
	Proven placement.Revision
	// Unreachable says that the cluster does not answer or cannot be used; UnusableWhy is the
	// reason for the latter.
	Unreachable bool
	UnusableWhy string
	// Suspended is the reason why the cluster is suspended; empty if it is not. The rollout
	// neither waits for a suspended cluster nor stops because of it.
	Suspended string
	// Deferral keeps content that is new to the placement from the cluster; zero if nothing does, or if Latest
	// is not new. It does not defer the removal of a cluster that is no longer selected.
	Deferral Deferral
	// BlockedSince is since when the cluster is unreachable or suspended; zero if that is not known.
	BlockedSince time.Time
	// Seen is the member's last report since Assigned changed; zero if there is none.
	Seen Seen
}

// A Deferral is a freeze or a closed window: new content waits for its end.
type Deferral struct {
	// Why is a clause that says what the content waits for; empty if it does not wait.
	Why string
	// Until is when that can change, also if it does not wait now; zero if it is not known.
	Until time.Time
	// MaxAge is how long content may wait before that is reported; zero for any time.
	MaxAge time.Duration
}

// Seen is the member's report about one revision.
type Seen struct {
	// Hash is the hash of the reported revision. If it is not the assigned one, nothing is
	// known.
	Hash   string
	Health Health
	// Since is when Health last changed.
	Since time.Time
	// Partial says that Health leaves out suspended objects.
	Partial bool
	// Failure is the reason why an Unavailable cluster will not become available by itself, or
	// what failed if Health is Failed; empty if an Unavailable cluster makes progress. If Health is Unknown
	// because the cluster reconnects, it is the one from before.
	Failure string
	// Writing says that gitfleet has written to the cluster since it was last available, which
	// may be why it is not available.
	Writing bool
	// DownSince is since when the cluster is known to be unavailable without an interruption by
	// which gitfleet may have lost sight of it or disturbed it; zero if the member has to report again.
	DownSince time.Time
	// UpSince is since when an Available or Untracked cluster is known to be available without an interruption, and
	// reachable; zero if it is not, or if the member has to report again.
	UpSince time.Time
}

// An EarlierStop is a failed update that has stopped the rollout on the other clusters.
type EarlierStop struct {
	placement.Stop
	// Latest is the hash of the content the cluster would get now, whether or not it is still
	// selected; empty if it is not known.
	Latest string
}

// A StagedRun is a staged update run of a placement with the strategy External, at one time. The Latest revisions of the
// targets are then those of its content.
type StagedRun struct {
	placement.Run
	// Approved are the names of the approval requests that are approved.
	Approved []string
	// Unknown is why the content is not known now, so that nothing can be decided; empty if it is.
	Unknown string
}

// A Health is the state of the assigned content that a member reports.
type Health int

// The states of health.
const (
	// Unknown: nothing was reported yet, or nothing about availability.
	Unknown Health = iota
	// Unavailable: applied and not available. It may become available, unless Seen.Failure says
	// otherwise.
	Unavailable
	// Failed: an override, an envelope or an object cannot be applied.
	Failed
	// Available: every object is applied and available.
	Available
	// Untracked: as Available, with resources without a health check. It counts as available
	// after unavailablePeriodSeconds.
	Untracked
	// DiffReported: compared in ReportDiff mode.
	DiffReported
	// DiffFailed: not everything could be compared.
	DiffFailed
)
