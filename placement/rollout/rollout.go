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

	"github.com/gitfleet/gitfleet/placement/api"
)

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
