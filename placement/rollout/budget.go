package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The default of maxUnavailable and maxSurge.
var defaultShare = intstr.FromString("25%")

const defaultPeriod = 60 * time.Second

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

// period is how long a cluster must be applied before resources without a health check count as
// available.
func period(s api.RolloutStrategy) time.Duration {
	if s.RollingUpdate == nil || s.RollingUpdate.UnavailablePeriodSeconds == nil {
		return defaultPeriod
	}
	return time.Duration(*s.RollingUpdate.UnavailablePeriodSeconds) * time.Second
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
