// Package rollout decides when a cluster may move to new content.
//
// Next is the whole of it: given what should be, what is, and the time, it
// answers what each cluster shall hold now, who waits and why, and when to ask
// again. It keeps no state and reads no clock, so a rollout survives a crash
// at any point: asked again, it goes on from what is.
package rollout

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An Input is one placement at one moment.
type Input struct {
	// Policy says how many clusters are wanted; nil means PickAll.
	Policy *api.PlacementPolicy
	// Strategy need not be defaulted.
	Strategy api.RolloutStrategy
	// Bindings are at most one for each cluster, in any order.
	Bindings []Binding
	Now      time.Time

	// MaxUnreachable is how many unreachable clusters, or which share of the
	// wanted ones, are left out of the count of those that must be available;
	// nil means all.
	MaxUnreachable *intstr.IntOrString
	// StopOnFailure lets no cluster be updated after the update of one failed that
	// was available until then, until the stop ends.
	StopOnFailure bool
	// Stops are those of the last plan, without what a person has resumed since.
	Stops []Stop
	// AvailableTimeout is how long a cluster may take to become available before
	// its update counts as failed; zero means any time.
	AvailableTimeout time.Duration
	// Resumed is when a person last said to go on: what was updated before
	// stops nothing any more.
	Resumed time.Time
	// Deleted says that the placement is gone.
	Deleted bool
}

// A Binding is a cluster of the placement, with what is known of it. One that is
// Removing and not Unscheduled was chosen anew, and waits until it is clean.
type Binding struct {
	placement.Binding
	// Latest is what the cluster would get now; zero if it is not wanted, or if
	// nobody can tell.
	Latest placement.Revision
	// Proven is what the cluster would get of the last content that was
	// available everywhere; zero if there is none. A cluster that joins a
	// stopped rollout gets it.
	Proven placement.Revision
	// Unreachable says that the cluster does not answer, or cannot be used though it
	// does: then UnusableWhy says why.
	Unreachable bool
	UnusableWhy string
	// Suspended is why somebody wants the cluster left as it is; empty if nobody
	// does. Nothing waits for it, and its failures are nobody's.
	Suspended string
	// Seen is what the member said since Assigned last changed; zero if
	// nothing.
	Seen Seen
}

// A Plan is the answer for one moment.
type Plan struct {
	// Assign is all that clusters shall hold from now on, also the unchanged,
	// in cluster order. A cluster that is not in it holds nothing, or is
	// being cleaned up.
	Assign []Assignment
	// Remove are the clusters whose content goes now, in order. They are not
	// in Assign any more.
	Remove []string
	// Abandon says that what is removed stays on the cluster and only stops
	// being ours. It is for placements that are deleted.
	Abandon bool
	// Held are those that wait, in cluster order.
	Held []Held
	// Failed are the wanted clusters where what they hold failed, in cluster order.
	Failed []Failure
	// Stopped is the first cluster whose failed update stops the rollout; empty
	// if it is not stopped.
	Stopped string
	// Stops are the failed updates that have not recovered, by cluster. They are
	// to be written down for the next plan.
	Stops []placement.Stop
	// Settled says that every wanted cluster holds its latest content, and that
	// all of it is available.
	Settled bool
	// Budget is what the answer was reckoned with.
	Budget Budget
	// Wake is when time alone could change the answer; zero if it cannot.
	Wake time.Time
}

// An Assignment is what one cluster shall hold.
type Assignment struct {
	Cluster string
	placement.Revision
	// Changed says that it held something else, or nothing, until now.
	Changed bool
	// Risked is to be written down in the binding.
	Risked bool
}

// A Failure is why what a cluster holds will not become available by itself.
type Failure struct {
	Cluster string
	Reason  string
	// TimedOut says that nothing but AvailableTimeout ended the wait.
	TimedOut bool
}

// Next plans one placement. The answer depends on nothing but the input, and
// not on the order of its bindings. A cluster whose latest content is what it
// holds is left at the commit it has.
//
// Two bindings for one cluster are an error of the caller, and panic.
func Next(in Input) Plan {
	in.Bindings = inOrder(in.Bindings)
	switch {
	case in.Deleted:
		return in.removeAll()
	case in.Strategy.Type == api.External:
		return in.standStill()
	}
	return in.roll()
}

// inOrder returns the bindings by cluster, without changing what it was given.
func inOrder(bindings []Binding) []Binding {
	byCluster := func(a, b Binding) int { return strings.Compare(a.Cluster, b.Cluster) }
	if !slices.IsSortedFunc(bindings, byCluster) {
		bindings = slices.Clone(bindings)
		slices.SortFunc(bindings, byCluster)
	}
	for i := 1; i < len(bindings); i++ {
		if bindings[i].Cluster == bindings[i-1].Cluster {
			panic("rollout: cluster " + bindings[i].Cluster + " is bound twice")
		}
	}
	return bindings
}

// removeAll takes a deleted placement from every cluster at once.
func (in *Input) removeAll() Plan {
	p := Plan{}
	if s := in.Strategy.DeleteStrategy; s != nil {
		p.Abandon = s.PropagationPolicy == api.DeletePropagationAbandon
	}
	for i := range in.Bindings {
		if b := &in.Bindings[i]; !b.Removing && b.Suspended == "" {
			p.Remove = append(p.Remove, in.Bindings[i].Cluster)
		}
	}
	return p
}

// standStill keeps everything as it is: a run from outside moves clusters.
func (in *Input) standStill() Plan {
	p := Plan{Settled: true, Stops: in.stops()}
	for i := range in.Bindings {
		b := &in.Bindings[i]
		switch {
		case b.Removing:
			in.waitForCleanup(&p, b)
			continue
		case b.wants() == drop:
			p.Remove = append(p.Remove, b.Cluster)
			continue
		case b.Unscheduled, !b.latest():
			p.hold(b, HeldExternal, "the strategy is External: the cluster waits for an update run")
		}
		in.keep(&p, b)
	}
	return p
}

// keep leaves a cluster what it holds.
func (in *Input) keep(p *Plan, b *Binding) {
	ready := b.ready(in)
	if !b.Unscheduled && !(ready && b.latest()) {
		p.Settled = false
	}
	if !ready {
		p.wake(b.readyAt(in))
	}
	in.judge(p, b)
	if b.Released() {
		p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: b.Assigned, Risked: b.Risked && !b.proves(in) && !b.excused(in)})
	}
}

// wake has the caller ask again at a time, if that is not zero.
func (p *Plan) wake(at time.Time) {
	if !at.IsZero() && (p.Wake.IsZero() || at.Before(p.Wake)) {
		p.Wake = at
	}
}

// give lets a cluster have new content. One that was still making progress, or that
// could not be compared, keeps the risk of the update before: what comes of both took
// it from available.
func (in *Input) give(p *Plan, b *Binding, r placement.Revision) {
	p.Settled = false
	_, failed := b.failure(in)
	risked := b.ready(in) && !in.reportsOnly() || b.Risked && (!failed || in.reportsOnly())
	p.Assign = append(p.Assign, Assignment{Cluster: b.Cluster, Revision: r, Changed: true, Risked: risked})
}

// waitForCleanup is for a cluster whose content is being removed.
func (in *Input) waitForCleanup(p *Plan, b *Binding) {
	if b.Unscheduled {
		return
	}
	p.Settled = false
	if b.Latest != (placement.Revision{}) {
		p.hold(b, HeldCleanup, "what the cluster held before is still being removed")
	}
}

// reportsOnly says that clusters are compared and never written to.
func (in *Input) reportsOnly() bool {
	return in.Strategy.ApplyStrategy != nil && in.Strategy.ApplyStrategy.Type == api.ReportDiff
}
