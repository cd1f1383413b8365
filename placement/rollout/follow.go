package rollout

import (
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Follow returns the plan that Next would make after one target has changed from was to is, and the assignment of that
// cluster, without reading the other targets. p is the plan for was. If more than a step of this one cluster has to be decided,
// ok is false, and Next has to be called.
//
// in is the Input that Next was called with for p, except that it has no Targets and a later Now, which must be before p.Wake. p may
// lack the assignments that do not change a revision. The new plan has no assignments, and its Wake may be earlier than that of Next.
func (p Plan) Follow(in Input, was, is Target) (next Plan, a Assignment, ok bool) {
	ends := func(s placement.Stop) bool { return s.Cluster == is.Cluster }
	switch {
	case in.Strategy.Type == api.External, p.moves(), !was.stays(&in), !is.stays(&in):
		return p, a, false
	case in.StopOnFailure && is.updateFailed(&in), slices.ContainsFunc(p.Stops, ends):
		return p, a, false
	}
	before, now := was.share(&in), is.share(&in)
	if before != now && len(p.Waiting) > 0 { // others may move now, or wait for other clusters
		return p, a, false
	}
	p.Budget.Ready += number(now.ready) - number(before.ready)
	p.Budget.CanBeReady += number(now.canBeReady) - number(before.canBeReady)
	p.unsettled += number(before.ready) - number(now.ready)
	p.Settled = p.unsettled == 0
	own := Plan{}
	in.keepAssigned(&own, &is)
	p.Assign = nil
	p.wake(own.Wake)
	at, failed := slices.BinarySearchFunc(p.Failed, is.Cluster, func(f Failure, cluster string) int { return strings.Compare(f.Cluster, cluster) })
	switch {
	case failed && len(p.Failed) == 1 && len(own.Failed) == 0:
		p.Failed = nil
	case failed || len(own.Failed) > 0:
		p.Failed = slices.Replace(slices.Clone(p.Failed), at, at+number(failed), own.Failed...)
	}
	return p, own.Assign[0], true
}

// A share is what the decisions about other clusters depend on of a cluster that stays as it is.
type share struct{ ready, canBeReady, untracked bool }

func (b *Target) share(in *Input) share {
	return share{ready: b.ready(in), canBeReady: b.canBeReady(), untracked: b.health() == Untracked}
}

// stays reports whether the cluster can be used, and keeps its content whatever happens to the others.
func (b *Target) stays(in *Input) bool {
	return b.HasRevision() && !b.Unscheduled && !b.blocked() && b.wants(in) == none
}

// moves reports whether the plan changes a revision, or removes one.
func (p *Plan) moves() bool {
	return len(p.Remove) > 0 || slices.ContainsFunc(p.Assign, func(a Assignment) bool { return a.Changed })
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
