package rollout

import "github.com/gitfleet/gitfleet/placement"

// A move is what a rolling update would do with a cluster.
type move int

const (
	// none: nothing to do, or nothing allowed.
	none move = iota
	// repair updates an unavailable cluster outside of the budget.
	repair
	// update replaces content on a cluster that may be available, or was a moment ago.
	update
	// add gives a cluster its first content.
	add
	// remove removes the content of a cluster that is no longer selected.
	remove
	// drop drops a cluster that is no longer selected and has no content.
	drop
)

// wants returns the move for the cluster, regardless of the budget.
func (b *Target) wants(in *Input) move {
	known := b.Latest != placement.Revision{}
	switch {
	case b.Removing:
		return none
	case b.Unscheduled && !b.HasRevision():
		return drop
	case b.Unscheduled:
		return remove
	case !b.HasRevision() && known:
		return add
	case b.latest(), !known:
		return none
	case b.isOutsideBudget(in):
		return repair
	}
	return update
}

// An allowance is what is left of the budget.
type allowance struct {
	removals, updates, additions int
	// brokenRemovals allows the removal of unavailable clusters that are not selected.
	brokenRemovals bool
}

// roll plans one step of a rolling update. Removals and updates use maxUnavailable, removals
// first; additions use maxSurge; clusters that have been unavailable anyway are updated outside of it.
func (in *Input) roll() Plan {
	p := Plan{Budget: in.budget(), Settled: true, Assign: make([]Assignment, 0, len(in.Targets))}
	if p.Stops = in.stops(); len(p.Stops) > 0 {
		p.Stopped = p.Stops[0].Cluster
	}
	left := in.allow(p.Budget, p.Stopped != "")
	for i := range in.Targets {
		b := &in.Targets[i]
		if b.keepsPlace(in) {
			p.wake(b.BlockedSince.Add(in.RepairAfter))
		}
		if !b.Removing {
			in.step(&p, b, &left)
		}
	}
	in.writeMessages(&p)
	return p
}

// allow divides the budget: removals first, all of them, and updates get the rest.
func (in *Input) allow(budget Budget, stopped bool) allowance {
	count := map[move]int{}
	for i := range in.Targets {
		b := &in.Targets[i]
		if m := b.wants(in); !b.blocked() && (m == remove || b.Deferral.Why == "") {
			count[m]++
		}
	}
	down := max(budget.mayGoDown(), 0)
	removals := min(count[remove], down)
	left := allowance{removals: removals, updates: down - removals, additions: max(budget.addable(), 0)}
	// An unavailable cluster does not count for the budget. It is removed when no selected
	// cluster can move first; otherwise it could stay for ever.
	selectedMoves := count[repair] > 0 || count[update] > 0 && left.updates > 0 || count[add] > 0 && left.additions > 0
	left.brokenRemovals = stopped || !selectedMoves
	return left
}

// step decides on one cluster.
func (in *Input) step(p *Plan, b *Target, left *allowance) {
	m := b.wants(in)
	if m != none && b.Deferral.Until.After(in.Now) { // it begins or ends then
		p.wake(b.Deferral.Until)
	}
	switch {
	case m == none:
		in.keepAssigned(p, b)
	case m == drop:
		p.Remove = append(p.Remove, b.Cluster)
	case b.Suspended != "":
		p.addWaiting(b, waitsSuspended, b.Suspended)
		in.keepAssigned(p, b)
	case b.Unreachable:
		in.keepWaiting(p, b, waitsUnreachable)
	case m == remove:
		in.remove(p, b, left)
	case p.Stopped != "":
		in.stepStopped(p, b, m, left)
	case b.Deferral.Why != "":
		in.stepDeferred(p, b, m, left)
	case m == repair:
		in.assign(p, b, b.Latest)
	case m == update && left.updates > 0:
		left.updates--
		in.assign(p, b, b.Latest)
	case m == update:
		in.keepWaiting(p, b, waitsMaxUnavailable)
	case m == add && left.additions > 0:
		left.additions--
		in.assign(p, b, b.Latest)
	case m == add:
		in.keepWaiting(p, b, waitsMaxSurge)
	}
}

func (in *Input) remove(p *Plan, b *Target, left *allowance) {
	switch {
	case left.removals > 0:
		left.removals--
	case left.brokenRemovals && b.isOutsideBudget(in):
	default:
		in.keepWaiting(p, b, waitsMaxUnavailable)
		return
	}
	p.Remove = append(p.Remove, b.Cluster)
}

// stepStopped updates no cluster. A cluster that joins gets the proven content.
func (in *Input) stepStopped(p *Plan, b *Target, m move, left *allowance) {
	if !in.addProven(p, b, m, left) {
		in.keepWaiting(p, b, waitsStopped)
	}
}

// stepDeferred keeps new content from a cluster. A cluster that joins gets the proven content.
func (in *Input) stepDeferred(p *Plan, b *Target, m move, left *allowance) {
	if !in.addProven(p, b, m, left) {
		p.addWaiting(b, waitsDeferral, b.Deferral.Why)
		in.keepAssigned(p, b)
	}
}

// addProven gives a cluster that joins the proven content, within the budget, and reports whether
// there is any.
func (in *Input) addProven(p *Plan, b *Target, m move, left *allowance) bool {
	switch known := m == add && b.Proven != (placement.Revision{}); {
	case known && left.additions > 0:
		left.additions--
		in.assign(p, b, b.Proven)
	case known:
		in.keepWaiting(p, b, waitsMaxSurge)
	default:
		return false
	}
	return true
}

// keepWaiting keeps the assigned revision. The message is added when the plan is complete.
func (in *Input) keepWaiting(p *Plan, b *Target, r reason) {
	p.addWaiting(b, r, "")
	if at := b.outsideBudgetAt(in); r == waitsMaxUnavailable && at.After(in.Now) {
		p.wake(at)
	}
	in.keepAssigned(p, b)
}
