// Package rollout decides when a cluster may move to a new revision.
//
// Next is the whole API. Given the desired revisions, the observed state and the time, it
// returns what each cluster is assigned now, which clusters wait and why, and when to plan
// again. It keeps no state and reads no clock, so that a rollout continues after a crash at any
// time.
package rollout

import (
	"slices"
	"strings"
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
	// is not new. A rollout defers no such cluster's repairs or removal.
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

// An Assignment is the revision assigned to one cluster.
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

// Next plans the next step of the rollout of one placement. The order of the targets does not
// matter. A cluster whose content is the latest keeps its commit.
//
// Two targets for one cluster are a programming error and panic.
func Next(in Input) Plan {
	in.Targets = byCluster(in.Targets)
	switch {
	case in.Strategy.Type == api.External && in.Run != nil:
		return in.stages()
	case in.Strategy.Type == api.External:
		return in.planExternal()
	}
	return in.roll()
}

// byCluster returns the targets in the order of their clusters; a copy if that is another order.
func byCluster(targets []Target) []Target {
	compare := func(a, b Target) int { return strings.Compare(a.Cluster, b.Cluster) }
	if !slices.IsSortedFunc(targets, compare) {
		targets = slices.Clone(targets)
		slices.SortFunc(targets, compare)
	}
	for i := 1; i < len(targets); i++ {
		if targets[i].Cluster == targets[i-1].Cluster {
			panic("rollout: cluster " + targets[i].Cluster + " is bound twice")
		}
	}
	return targets
}

// planExternal keeps all assignments: only a staged update run changes them.
func (in *Input) planExternal() Plan {
	p := Plan{Settled: true, Stops: in.stops()}
	for i := range in.Targets {
		b := &in.Targets[i]
		switch {
		case b.Removing:
			continue
		case b.wants(in) == drop:
			p.Remove = append(p.Remove, b.Cluster)
			continue
		case b.Unscheduled, !b.latest():
			p.addWaiting(b, waitsExternal, "the strategy is External: the cluster waits for an update run")
		}
		in.keepAssigned(&p, b)
	}
	return p
}

// keepAssigned keeps the revision assigned to a cluster.
func (in *Input) keepAssigned(p *Plan, b *Target) {
	ready := b.ready(in)
	if !b.Unscheduled && !(ready && b.latest()) {
		p.Settled = false
		p.unsettled++
	}
	if !ready {
		p.wake(b.readyAt(in))
	}
	if f, failed := b.failure(in); failed && !b.Unscheduled {
		p.Failed = append(p.Failed, f)
	} else if !b.Unscheduled {
		p.wake(b.failsAt(in))
	}
	if b.HasRevision() {
		p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: b.Assigned, Risked: b.Risked && !b.fullyAvailable(in) && !b.resumedSince(in), WasAvailable: b.WasAvailable || ready})
	}
}

// wake sets an earlier wake time, if at is not zero.
func (p *Plan) wake(at time.Time) {
	if !at.IsZero() && (p.Wake.IsZero() || at.Before(p.Wake)) {
		p.Wake = at
	}
}

// assign assigns a new revision to a cluster. A cluster that was available is at risk, also if it
// has been unavailable only for a moment. If the cluster was still making progress with the
// old one, or could not be compared, it stays at risk, since both updates together may have
// made it unavailable; unless the rollout was resumed between them.
func (in *Input) assign(p *Plan, b *Target, r placement.Revision) {
	p.Settled = false
	_, failed := b.failure(in)
	stillRisked := b.Risked && !b.resumedSince(in) && (!failed || in.Strategy.ReportsDiff())
	risked := (b.ready(in) || b.brieflyUnavailable(in)) && !in.Strategy.ReportsDiff() || stillRisked
	p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: r, Changed: true, Risked: risked})
}
