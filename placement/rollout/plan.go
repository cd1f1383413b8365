package rollout

import (
	"time"

	"github.com/gitfleet/gitfleet/placement"
)

// A Plan is the next step of the rollout.
type Plan struct {
	// Assign are the assignments of all clusters from now on, changed or not, by cluster. A
	// cluster that is missing has nothing, or is being cleaned up.
	Assign []Assignment
	// Remove are the clusters whose content is removed now, in order. They are not in Assign.
	Remove []string
	// Waiting are the clusters that wait, by cluster.
	Waiting []Waiting
	// Failed are the selected clusters whose assigned content failed, by cluster.
	Failed []Failure
	// Stopped is the first cluster whose failed update stops the rollout; empty
	// if it is not stopped.
	Stopped string
	// Stops are the failed updates that have not recovered, by cluster, to be passed to the
	// next call.
	Stops []placement.Stop
	// Settled says that every selected cluster has its latest content, and that all of it is
	// available.
	Settled bool
	// unsettled counts the clusters because of which a plan without moves is not Settled.
	unsettled int
	// Run is the run with what is to be recorded of it; nil if there is none.
	Run *placement.Run
	// Progress is where that run is; nil if there is none.
	Progress *RunProgress
	// Budget is the budget that the plan was made with.
	Budget Budget
	// Wake is the next time at which the plan could change without new input; zero means never.
	Wake time.Time
}

// An Assignment assigns a revision to a cluster.
type Assignment struct {
	Cluster string
	placement.Revision
	// Changed says that the cluster had another revision, or none, until now.
	Changed bool
	// Risked and WasAvailable are to be recorded in the binding.
	Risked, WasAvailable bool
}

// A Failure is why the assigned content of a cluster will not become available by itself.
type Failure struct {
	Cluster string
	Reason  string
	// TimedOut says that the failure is AvailableTimeout.
	TimedOut bool
}

// A Waiting is a cluster that waits.
type Waiting struct {
	Cluster string
	reason  reason
	// Message is a clause that says what it waits for.
	Message string
}

// A Budget says how many clusters may be unavailable, and how many may have content at once.
// Percentages are of Target, rounded up.
type Budget struct {
	// Target is how many clusters are wanted.
	Target int
	// MaxUnavailable and MaxSurge are the limits as numbers.
	MaxUnavailable, MaxSurge int
	// Ready is the number of clusters that are available and will stay so.
	Ready int
	// CanBeReady counts the clusters that hold content and may be available.
	CanBeReady int
	// NotCounted is the number of suspended and unreachable clusters that the rollout skips.
	NotCounted int
}

// RunProgress is where a staged run is at one time.
type RunProgress struct {
	// Updated are the selected clusters that have been available with the content of the run, and Updating those that have the
	// content and have not; both sorted. Failed are those of the stage whose turn it is on which the update has failed, so that the stage waits.
	Updated, Updating, Failed []string
	// NotAwaited are the clusters of that stage that neither it nor its gates wait for, within the limits of the strategy: unreachable ones, and
	// those on which the update has failed. Unreachable ones of finished stages that do not have the content are among them.
	NotAwaited []string
	// FailedGates are the gates of that stage that have failed, with their answers.
	FailedGates []string
}

// A reason is what a cluster waits for.
type reason string
