package rollout

import "k8s.io/apimachinery/pkg/util/intstr"

// The default of maxUnavailable and maxSurge.
var defaultShare = intstr.FromString("25%")

// mayGoDown is how many clusters may become unavailable now.
func (b Budget) mayGoDown() int { return b.Ready - (b.Target - b.NotCounted - b.MaxUnavailable) }

// addable is how many clusters may get their first content now.
func (b Budget) addable() int { return b.Target + b.MaxSurge - b.CanBeReady }

// budget computes the budget.
func (in *Input) budget() Budget {
	unavailable, surge := in.shares()
	b := Budget{Target: in.Wanted, MaxUnavailable: roundUp(unavailable, in.Wanted), MaxSurge: roundUp(surge, in.Wanted)}
	skipped := in.skipped()
	for i := range in.Targets {
		c := &in.Targets[i]
		if skipped[i] {
			if !c.Unscheduled {
				b.NotCounted++
			}
			continue
		}
		if c.canBeReady() {
			b.CanBeReady++
		}
		// A cluster with a deletion in progress is available now but will not stay so.
		if c.ready(in) && !c.Removing {
			b.Ready++
		}
	}
	return b
}

// skipped returns for each target whether the rollout skips the cluster: suspended clusters, and
// unreachable ones up to MaxUnreachable, count neither as unavailable nor as available. Those that
// keep their place in the budget count as unavailable.
func (in *Input) skipped() []bool {
	out, left := make([]bool, len(in.Targets)), len(in.Targets)
	if in.MaxUnreachable != nil {
		left = roundUp(*in.MaxUnreachable, in.Wanted)
	}
	for i := range in.Targets {
		switch b := &in.Targets[i]; {
		case b.keepsPlace(in):
		case b.Suspended != "":
			out[i] = true
		case b.Unreachable && left > 0:
			out[i] = true
			left--
		}
	}
	return out
}

// shares are maxUnavailable and maxSurge as written.
func (in *Input) shares() (unavailable, surge intstr.IntOrString) {
	unavailable, surge = defaultShare, defaultShare
	if r := in.Strategy.RollingUpdate; r != nil {
		if r.MaxUnavailable != nil {
			unavailable = *r.MaxUnavailable
		}
		if r.MaxSurge != nil {
			surge = *r.MaxSurge
		}
	}
	return unavailable, surge
}

// roundUp resolves a percentage, rounded up. Invalid values were refused at load; here they
// count as zero.
func roundUp(v intstr.IntOrString, of int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, of, true)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
