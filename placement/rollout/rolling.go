package rollout

import "github.com/gitfleet/gitfleet/placement"

// A move is what a rolling update would do with a cluster.
type move int

const (
	// stay: nothing to do, or nothing that may be done.
	stay move = iota
	// repair updates a cluster that is down, which costs nothing.
	repair
	// update replaces content on a cluster that may be available.
	update
	// add gives a cluster its first content.
	add
	// remove takes content from a cluster that is no longer wanted.
	remove
	// drop forgets a cluster that is no longer wanted and has no content.
	drop
)

// wants says what the rolling update would do with a cluster, were there no
// budget.
func (b *Binding) wants() move {
	known := b.Latest != placement.Revision{}
	switch {
	case b.Removing:
		return stay
	case b.Unscheduled && !b.Released():
		return drop
	case b.Unscheduled:
		return remove
	case !b.Released() && known:
		return add
	case b.latest(), !known:
		return stay
	case b.down():
		return repair
	}
	return update
}

// An allowance is what is left of the budget while clusters are gone through.
type allowance struct {
	removals, updates, additions int
	// brokenRemovals lets unwanted clusters go that are down.
	brokenRemovals bool
}

// roll is one pass of a rolling update. Removals and updates draw on
// maxUnavailable, removals first; additions on maxSurge; clusters that are down
// are updated for nothing.
func (in *Input) roll() Plan {
	p := Plan{Budget: in.budget(), Settled: true, Assign: make([]Assignment, 0, len(in.Bindings))}
	if p.Stops = in.stops(); len(p.Stops) > 0 {
		p.Stopped = p.Stops[0].Cluster
	}
	left := in.allow(p.Budget, p.Stopped != "")
	for i := range in.Bindings {
		b := &in.Bindings[i]
		if b.Removing {
			in.waitForCleanup(&p, b)
			continue
		}
		in.step(&p, b, &left)
	}
	in.explain(&p)
	return p
}

// allow shares out the budget. Removals come first, of all there are, and
// updates get the rest.
func (in *Input) allow(budget Budget, stopped bool) allowance {
	count := map[move]int{}
	for i := range in.Bindings {
		if b := &in.Bindings[i]; !b.aside() {
			count[b.wants()]++
		}
	}
	down := max(budget.removable(), 0)
	removals := min(count[remove], down)
	left := allowance{removals: removals, updates: down - removals, additions: max(budget.addable(), 0)}
	// A cluster that is down does not help to keep enough available. It goes
	// when nothing wanted can move first; otherwise it could stay for ever.
	left.brokenRemovals = stopped || count[repair] == 0 &&
		(count[update] == 0 || left.updates == 0) && (count[add] == 0 || left.additions == 0)
	return left
}

// step decides on one cluster.
func (in *Input) step(p *Plan, b *Binding, left *allowance) {
	m := b.wants()
	switch {
	case m == stay:
		in.keep(p, b)
	case m == drop:
		p.Remove = append(p.Remove, b.Cluster)
	case b.Suspended != "":
		p.hold(b, HeldSuspended, b.Suspended)
		in.keep(p, b)
	case b.Unreachable:
		in.wait(p, b, HeldUnreachable)
	case m == remove:
		in.remove(p, b, left)
	case p.Stopped != "":
		in.stepStopped(p, b, m, left)
	case m == repair:
		in.give(p, b, b.Latest)
	case m == update && left.updates > 0:
		left.updates--
		in.give(p, b, b.Latest)
	case m == update:
		in.wait(p, b, HeldMaxUnavailable)
	case left.additions > 0:
		left.additions--
		in.give(p, b, b.Latest)
	default:
		in.wait(p, b, HeldMaxSurge)
	}
}

func (in *Input) remove(p *Plan, b *Binding, left *allowance) {
	switch {
	case left.removals > 0:
		left.removals--
	case left.brokenRemovals && b.down():
	default:
		in.wait(p, b, HeldMaxUnavailable)
		return
	}
	p.Remove = append(p.Remove, b.Cluster)
}

// stepStopped updates nobody. A cluster that joins gets what is known to work.
func (in *Input) stepStopped(p *Plan, b *Binding, m move, left *allowance) {
	if m == add && b.Proven != (placement.Revision{}) {
		if left.additions > 0 {
			left.additions--
			in.give(p, b, b.Proven)
			return
		}
		in.wait(p, b, HeldMaxSurge)
		return
	}
	in.wait(p, b, HeldStopped)
}

// wait keeps what the cluster holds. What it waits for is explained when all is
// decided.
func (in *Input) wait(p *Plan, b *Binding, r Reason) {
	p.hold(b, r, "")
	in.keep(p, b)
}
